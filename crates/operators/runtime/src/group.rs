//! Ranks of a job that are threads of one process: they exchange values of any type over shared memory.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// A value that a rank gives to the others.
type Given = Arc<dyn Any + Send + Sync>;

/// A rank of a group of threads. Clones are the same rank; with the last of them it leaves the group, and the others no longer wait for it.
#[derive(Debug, Clone)]
pub struct Rank(Arc<Member>);

struct Member {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Values of the ranks that have arrived at the exchange in progress.
    given: Vec<Option<Given>>,
    /// Number of finished exchanges.
    finished: u64,
    /// Values of the last finished exchange.
    last: Arc<[Given]>,
    /// The first rank that failed or left, with its reason.
    failed: Option<(usize, String)>,
}

impl Rank {
    /// A group of a number of ranks.
    #[must_use]
    pub fn group(ranks: usize) -> Vec<Rank> {
        let state = State { given: vec![None; ranks], finished: 0, last: Arc::from([]), failed: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let member = |rank| Rank(Arc::new(Member { rank, shared: Arc::clone(&shared) }));
        (0..ranks).map(member).collect()
    }

    /// Its number in the group.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks in the group.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.0.shared.lock().given.len()
    }

    /// Gives a value to all ranks, and returns those of all ranks in their order, once all have given one. With a limit it waits no longer for the
    /// others.
    ///
    /// # Errors
    /// Where another rank failed, has left the group, gives a value of another type, or is too late.
    pub fn gather<T: Send + Sync + 'static>(
        &self,
        value: T,
        limit: Option<Duration>,
    ) -> Result<Vec<Arc<T>>, Error> {
        let own = self.0.rank;
        let shared = &self.0.shared;
        let begin = Instant::now();
        let mut state = shared.lock();
        state.check()?;
        let round = state.finished;
        state.given[own] = Some(Arc::new(value));
        if state.given.iter().all(Option::is_some) {
            state.last = state.given.iter_mut().filter_map(Option::take).collect();
            state.finished += 1;
            shared.changed.notify_all();
        }
        while state.finished == round {
            state.check()?;
            let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
            state = match left {
                None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    let missing = state.given.iter().position(Option::is_none).unwrap_or(own);
                    let why = format!("it did not reach an exchange within {} s", begin.elapsed().as_secs());
                    state.failed.get_or_insert((missing, why));
                    shared.changed.notify_all();
                    continue;
                }
                Some(left) => {
                    let waited = shared.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let last = Arc::clone(&state.last);
        drop(state);
        let other = |rank| Error::Rank { rank, why: "it is at another exchange".to_owned() };
        last.iter()
            .enumerate()
            .map(|(rank, given)| Arc::clone(given).downcast::<T>().map_err(|_| other(rank)))
            .collect()
    }

    /// Ends the exchanges of all ranks with an error that names this rank.
    pub fn fail(&self, why: &str) {
        let shared = &self.0.shared;
        shared.lock().failed.get_or_insert((self.0.rank, why.to_owned()));
        shared.changed.notify_all();
    }

    /// Reports the failure of a rank.
    ///
    /// # Errors
    /// Where a rank failed, or has left the group.
    pub fn check(&self) -> Result<(), Error> {
        self.0.shared.lock().check()
    }

    /// A view of the group that is not a rank of it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.0.shared))
    }
}

/// A view of a group that is not a rank of it.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Reports the failure of a rank.
    ///
    /// # Errors
    /// As [`Rank::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.0.lock().check()
    }

    /// Ends the exchanges of all ranks with an error that names a rank.
    pub fn fail(&self, rank: usize, why: &str) {
        self.0.lock().failed.get_or_insert((rank, why.to_owned()));
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl State {
    fn check(&self) -> Result<(), Error> {
        if let Some((rank, why)) = &self.failed {
            return Err(Error::Rank { rank: *rank, why: why.clone() });
        }
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change leaves a consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.shared.lock().failed.get_or_insert((self.rank, "it has ended".to_owned()));
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Results of all ranks.
    fn on_ranks<R: Send>(ranks: usize, work: impl Fn(Rank) -> R + Sync) -> Vec<R> {
        thread::scope(|scope| {
            let threads: Vec<_> =
                Rank::group(ranks).into_iter().map(|rank| scope.spawn(|| work(rank))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn every_rank_receives_the_values_of_all_in_their_order() {
        let sums = on_ranks(3, |rank| {
            let mut all = Vec::new();
            for round in 0..200 {
                let given = rank.gather(10 * round + rank.rank(), None).expect("all arrive");
                all.push(given.iter().map(|value| **value).collect::<Vec<_>>());
            }
            all
        });
        for of_rank in sums {
            for (round, given) in of_rank.iter().enumerate() {
                assert_eq!(given, &[10 * round, 10 * round + 1, 10 * round + 2]);
            }
        }
    }

    #[test]
    fn a_rank_that_ends_or_fails_is_named() {
        let errors = on_ranks(3, |rank| match rank.rank() {
            1 => String::new(),
            _ => rank.gather((), None).expect_err("rank 1 has ended").to_string(),
        });
        assert!(errors[0].contains("rank 1") && errors[2].contains("rank 1"), "{errors:?}");
        let errors = on_ranks(2, |rank| match rank.rank() {
            1 => {
                rank.fail("index 7 of table 2");
                String::new()
            }
            _ => rank.gather((), None).expect_err("rank 1 has failed").to_string(),
        });
        assert!(errors[0].contains("rank 1") && errors[0].contains("index 7"), "{errors:?}");
    }

    #[test]
    fn a_rank_that_hangs_is_named_after_the_limit() {
        let limit = Duration::from_millis(50);
        let errors = on_ranks(2, |rank| match rank.rank() {
            0 => {
                while rank.check().is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
                rank.gather((), None).expect_err("it was too late").to_string()
            }
            _ => rank.gather((), Some(limit)).expect_err("rank 0 is too late").to_string(),
        });
        assert!(errors.iter().all(|error| error.contains("rank 0")), "{errors:?}");
    }

    #[test]
    fn different_exchanges_are_refused() {
        let errors = on_ranks(2, |rank| match rank.rank() {
            0 => rank.gather(1_u32, None).map(|_| ()).expect_err("another type").to_string(),
            _ => rank.gather(1_f32, None).map(|_| ()).expect_err("another type").to_string(),
        });
        assert!(errors[0].contains("rank 1 failed: it is at another exchange"), "{errors:?}");
    }
}
