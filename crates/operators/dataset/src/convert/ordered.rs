//! Work on numbered items by several threads, whose results are used in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Items that are worked on or wait for their turn, for each thread.
const AHEAD: u64 = 2;

struct Input<N> {
    next: N,
    number: u64,
    ended: bool,
}

struct Output<O, E, C> {
    commit: C,
    done: u64,
    ready: BTreeMap<u64, Result<O, E>>,
    error: Option<E>,
    ended: bool,
}

struct Shared<N, O, E, C> {
    input: Mutex<Input<N>>,
    output: Mutex<Output<O, E, C>>,
    /// The earliest item is done, or the work has ended.
    moved: Condvar,
    ahead: u64,
}

/// Takes items from `next` until it returns none, works on them on `threads` threads, and commits the results in the
/// order of the items. The result does not depend on the number of threads: the error is that of the first item with one,
/// and nothing is committed after it.
pub(crate) fn ordered<I: Send, O: Send, E: Send>(
    threads: usize,
    next: impl FnMut() -> Result<Option<I>, E> + Send,
    work: impl Fn(I) -> Result<O, E> + Sync,
    commit: impl FnMut(O) -> Result<(), E> + Send,
) -> Result<(), E> {
    let input = Mutex::new(Input { next, number: 0, ended: false });
    let output = Output { commit, done: 0, ready: BTreeMap::new(), error: None, ended: false };
    let ahead = AHEAD * threads as u64;
    let shared = Shared { input, output: Mutex::new(output), moved: Condvar::new(), ahead };
    thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(|| shared.run(&work));
        });
        shared.run(&work);
    });
    let output = shared.output.into_inner().unwrap_or_else(PoisonError::into_inner);
    output.error.map_or(Ok(()), Err)
}

impl<N, O, E, C> Shared<N, O, E, C> {
    fn output(&self) -> MutexGuard<'_, Output<O, E, C>> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of one thread.
    fn run<I>(&self, work: &impl Fn(I) -> Result<O, E>)
    where
        N: FnMut() -> Result<Option<I>, E>,
        C: FnMut(O) -> Result<(), E>,
    {
        let _watch = Watch(self);
        while let Some((number, item)) = self.take() {
            let mut output = self.output();
            while number >= output.done + self.ahead && !output.ended {
                output = self.moved.wait(output).unwrap_or_else(PoisonError::into_inner);
            }
            if output.ended {
                return;
            }
            drop(output);
            let result = item.and_then(work);
            self.deliver(number, result);
        }
    }

    fn take<I>(&self) -> Option<(u64, Result<I, E>)>
    where
        N: FnMut() -> Result<Option<I>, E>,
    {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if input.ended {
            return None;
        }
        let item = (input.next)();
        input.ended = !matches!(item, Ok(Some(_)));
        let number = input.number;
        input.number += 1;
        item.transpose().map(|item| (number, item))
    }

    fn deliver(&self, number: u64, result: Result<O, E>)
    where
        C: FnMut(O) -> Result<(), E>,
    {
        let mut output = self.output();
        let output = &mut *output;
        output.ready.insert(number, result);
        while !output.ended
            && let Some(result) = output.ready.remove(&output.done)
        {
            output.done += 1;
            if let Err(error) = result.and_then(&mut output.commit) {
                (output.error, output.ended) = (Some(error), true);
            }
        }
        self.moved.notify_all();
    }
}

/// Ends the other threads if one panics; they would wait for its result forever.
struct Watch<'a, N, O, E, C>(&'a Shared<N, O, E, C>);

impl<N, O, E, C> Drop for Watch<'_, N, O, E, C> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.output().ended = true;
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Commits of items `0..items` of which some fail, and the error.
    fn run(threads: usize, items: u64, fails: &[u64]) -> (Vec<u64>, Result<(), u64>) {
        let (mut next, mut done) = (0, Vec::new());
        let result = ordered(
            threads,
            || {
                next += 1;
                Ok((next <= items).then_some(next - 1))
            },
            |item| {
                // Later items are done sooner.
                (0..(items - item) * 50).for_each(|step| {
                    std::hint::black_box(step);
                });
                if fails.contains(&item) { Err(item) } else { Ok(item) }
            },
            |item| {
                done.push(item);
                Ok(())
            },
        );
        (done, result)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn results_do_not_depend_on_threads(
            threads in 1_usize..9,
            items in 0_u64..60,
            fails in proptest::collection::vec(0_u64..80, 0..3),
        ) {
            let first = fails.iter().copied().filter(|&item| item < items).min();
            let (done, result) = run(threads, items, &fails);
            prop_assert!(done.into_iter().eq(0..first.unwrap_or(items)));
            prop_assert_eq!(result.err(), first);
        }
    }
}
