//! Execution resources of operators: an instruction set and threads.

use std::fmt;
use std::io;
use std::ops::Range;

use crate::Isa;
use crate::arch::Arch;
use crate::pool::{self, Pool};
use crate::round::{run_on_caller, share_start};
use crate::shared::Shared;
use crate::team::Team;

/// Limit on threads: more than any machine can use, and far below the system's limit.
const MOST_THREADS: usize = 1024;

/// Instructions or threads that are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The processor does not have the instructions.
    #[error("this processor has no {isa}: the most it has is {best}")]
    Isa {
        /// The requested instructions.
        isa: Isa,
        /// The widest available instructions.
        best: Isa,
    },
    /// Too many threads.
    #[error("{given} threads are too many: give at most {most}")]
    TooManyThreads {
        /// The requested number.
        given: usize,
        /// The largest number.
        most: usize,
    },
    /// The system cannot start more threads.
    #[error("{threads} threads cannot be started: {source}")]
    Start {
        /// The requested number.
        threads: usize,
        /// The system's error.
        source: io::Error,
    },
}

/// The processor as used by operators.
///
/// Work is divided into fixed parts, and part `i` always does the same: results do not depend on the number of threads.
#[derive(Debug)]
pub struct Cpu {
    arch: Arch,
    threads: usize,
    crew: Workers,
}

/// Threads that work in addition to the caller.
enum Workers {
    Nobody,
    Team(Team),
    Pool(Box<dyn Pool>),
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Workers::Nobody => "Nobody",
            Workers::Team(_) => "Team",
            Workers::Pool(_) => "Pool",
        })
    }
}

impl Cpu {
    /// A processor with the widest instructions of this machine, on this many threads; 0 is as many as the machine has.
    ///
    /// # Errors
    ///
    /// The threads cannot be started.
    pub fn new(threads: usize) -> Result<Cpu, CpuError> {
        Cpu::with_isa(Isa::best(), threads)
    }

    /// A processor with these instructions, on this many threads; 0 is as many as the machine has.
    ///
    /// # Errors
    ///
    /// This machine does not have these instructions, or the threads are too many or cannot be started.
    pub fn with_isa(isa: Isa, threads: usize) -> Result<Cpu, CpuError> {
        let arch = Cpu::arch_of(isa)?;
        let threads = match threads {
            // The processors that the process may use, or fewer under a quota.
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            given if given > MOST_THREADS => {
                return Err(CpuError::TooManyThreads { given, most: MOST_THREADS });
            }
            given => given,
        };
        let start = || Team::new(threads).map_err(|source| CpuError::Start { threads, source });
        let crew = if threads > 1 { Workers::Team(start()?) } else { Workers::Nobody };
        Ok(Cpu { arch, threads, crew })
    }

    /// A processor with the widest instructions of this machine, on threads of the caller's. Sharing the threads of the
    /// rest of the process avoids two pools that compete for the processors.
    #[must_use]
    pub fn on(pool: impl Pool + 'static) -> Cpu {
        let arch = Arch::new(Isa::best()).unwrap_or(Arch::Scalar);
        Cpu::with_arch_on(arch, pool)
    }

    /// A processor with these instructions, on threads of the caller's.
    ///
    /// # Errors
    ///
    /// This machine does not have these instructions.
    pub fn with_isa_on(isa: Isa, pool: impl Pool + 'static) -> Result<Cpu, CpuError> {
        Ok(Cpu::with_arch_on(Cpu::arch_of(isa)?, pool))
    }

    fn with_arch_on(arch: Arch, pool: impl Pool + 'static) -> Cpu {
        let threads = pool.threads().clamp(1, MOST_THREADS);
        let crew = if threads > 1 { Workers::Pool(Box::new(pool)) } else { Workers::Nobody };
        Cpu { arch, threads, crew }
    }

    fn arch_of(isa: Isa) -> Result<Arch, CpuError> {
        Arch::new(isa).ok_or_else(|| CpuError::Isa { isa, best: Isa::best() })
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

    /// Number of threads in use.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Does the work of all parts `0..parts`, each once, on all threads. Every thread has a run of consecutive parts,
    /// so that it accesses the same memory in each call. When it is done, it takes parts that others have not begun.
    pub fn run(&self, parts: usize, work: impl Fn(usize) + Sync) {
        self.stages(self.threads, &[parts], |_, part| work(part));
    }

    /// Does all parts of each stage, on at most `threads` of the threads: `work` is called once with each stage and
    /// part. No part of a stage begins before all parts of the stage before are done.
    pub(crate) fn stages(&self, threads: usize, stages: &[usize], work: impl Fn(usize, usize) + Sync) {
        let threads = threads.min(self.threads).min(stages.iter().copied().max().unwrap_or(0));
        match &self.crew {
            Workers::Team(team) if threads > 1 => team.run(threads, stages, &work),
            Workers::Pool(pool) if threads > 1 => pool::run(&**pool, threads, stages, &work),
            _ => run_on_caller(stages, &work),
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
    share_start(total, shares, index)..share_start(total, shares, index + 1)
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
