//! What operators run on: an instruction set and threads.

use std::io;
use std::ops::Range;

use crate::Isa;
use crate::arch::Arch;
use crate::shared::Shared;
use crate::team::Team;

/// More threads than any machine has use for; far below what a system can start.
const MOST_THREADS: usize = 1024;

/// Instructions or threads that are not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The processor does not have the instructions.
    #[error("this processor has no {isa}: the most it has is {best}")]
    Isa {
        /// Those asked for.
        isa: Isa,
        /// The widest it has.
        best: Isa,
    },
    /// More threads than any machine has use for.
    #[error("{given} threads are too many: give at most {most}")]
    TooManyThreads {
        /// Those asked for.
        given: usize,
        /// The most there can be.
        most: usize,
    },
    /// The system starts no more threads.
    #[error("{threads} threads cannot be started: {source}")]
    Start {
        /// Those asked for.
        threads: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// The processor as operators see it.
///
/// Work is cut into fixed parts, and part `i` always does the same: results do not depend on the number of threads.
#[derive(Debug)]
pub struct Cpu {
    arch: Arch,
    threads: usize,
    team: Option<Team>,
}

impl Cpu {
    /// The widest instructions of this machine, on this many threads; 0 is as many as it has.
    ///
    /// # Errors
    ///
    /// The threads cannot be started.
    pub fn new(threads: usize) -> Result<Cpu, CpuError> {
        Cpu::with_isa(Isa::best(), threads)
    }

    /// These instructions, on this many threads; 0 is as many as the machine has.
    ///
    /// # Errors
    ///
    /// This machine has not these instructions, or the threads are too many or cannot be started.
    pub fn with_isa(isa: Isa, threads: usize) -> Result<Cpu, CpuError> {
        let arch = Arch::new(isa).ok_or_else(|| CpuError::Isa { isa, best: Isa::best() })?;
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given if given > MOST_THREADS => {
                return Err(CpuError::TooManyThreads { given, most: MOST_THREADS });
            }
            given => given,
        };
        let start = || Team::new(threads).map_err(|source| CpuError::Start { threads, source });
        let team = if threads > 1 { Some(start()?) } else { None };
        Ok(Cpu { arch, threads, team })
    }

    /// The instructions in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.arch.isa()
    }

    /// The instructions in use, with the proof that the processor has them.
    pub(crate) fn arch(&self) -> Arch {
        self.arch
    }

    /// The threads in use.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Does the work of all parts `0..parts`, each once, on all threads. Every thread takes one run of neighbouring
    /// parts: nothing is stolen, so that a thread meets the same memory in each call.
    pub fn run(&self, parts: usize, work: impl Fn(usize) + Sync) {
        match &self.team {
            Some(team) if parts > 1 => {
                team.run(&|thread| share(parts, self.threads, thread).for_each(&work));
            }
            _ => (0..parts).for_each(work),
        }
    }

    /// Like [`run`](Cpu::run), with one piece of mutable state for each part.
    pub fn run_with<T: Send>(&self, states: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
        let parts = states.len();
        let states = Shared::new(states);
        // SAFETY: `run` does every part once, and part `i` has state `i` alone.
        self.run(parts, |part| work(part, unsafe { &mut states.range(part, 1)[0] }));
    }
}

/// The `index`-th of `shares` even shares of `0..total`, in order.
#[must_use]
pub fn share(total: usize, shares: usize, index: usize) -> Range<usize> {
    let at = |index: usize| (total as u128 * index as u128 / shares.max(1) as u128) as usize;
    at(index)..at(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_part_is_done_once_at_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            let cpu = Cpu::with_isa(Isa::Scalar, threads).unwrap();
            for parts in [0, 1, 2, 5, 100] {
                let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                cpu.run(parts, |part| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
                let mut states = vec![0; parts];
                cpu.run_with(&mut states, |part, state| *state += part + 1);
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                assert!(states.iter().enumerate().all(|(part, &state)| state == part + 1));
            }
        }
    }

    #[test]
    fn threads_beyond_reason_are_refused() {
        let error = Cpu::new(100_000).unwrap_err().to_string();
        assert!(error.contains("at most 1024"), "{error}");
    }

    #[test]
    fn shares_are_even_and_cover_all() {
        for (total, shares) in [(10, 3), (2, 5), (0, 4), (7, 7)] {
            let mut next = 0;
            for index in 0..shares {
                let range = share(total, shares, index);
                assert_eq!(range.start, next);
                assert!(range.len() <= total / shares + 1);
                next = range.end;
            }
            assert_eq!(next, total);
        }
    }
}
