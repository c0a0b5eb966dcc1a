//! A round: the parts of some work, and their distribution to members.
//!
//! Each member of a round has a share of consecutive parts, and does those first, so that it accesses the same memory
//! in each round. A member that is done takes parts that others have not begun. So no member waits for a thread that
//! the system has not scheduled: the running members do its share, and only parts that were begun are waited for.
//!
//! Work may have stages: no part of a stage begins before all parts of the stage before are done.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Largest number of stages of a round.
pub(crate) const MOST_STAGES: usize = 8;

/// Number of polls before something else is tried.
const LOOKS: usize = 32;

/// Number of polls before a thread yields. A thread that yields may get its processor back only after milliseconds.
pub(crate) const PATIENCE: usize = 4096;

/// Called with a stage and a part of it.
pub(crate) type Work<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Payload of a panic of the work.
pub(crate) type Panic = Box<dyn Any + Send>;

thread_local! {
    /// Whether this thread is doing parts of any round.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// A member's share: the next part of each stage. Alone on its cache lines, which come in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Share {
    next: [AtomicUsize; MOST_STAGES],
    /// State for the caller that offers the round.
    pub(crate) state: AtomicU32,
}

/// Common progress of the members of a round.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Number of parts of each stage that are done; not counted for the last.
    done: [AtomicUsize; MOST_STAGES],
    /// Whether a member panicked: later stages are then not begun.
    stop: AtomicBool,
    panic: Mutex<Option<Panic>>,
}

/// The work of a round, and the shares of its members.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    /// Number of parts of each stage.
    pub(crate) stages: &'a [usize],
    pub(crate) work: Work<'a>,
    /// One share for each member.
    pub(crate) shares: &'a [Share],
    pub(crate) progress: &'a Progress,
}

impl<'a> Round<'a> {
    /// A round that has not begun.
    pub(crate) fn new(
        stages: &'a [usize],
        work: Work<'a>,
        shares: &'a [Share],
        progress: &'a Progress,
    ) -> Round<'a> {
        assert!(
            stages.len() <= MOST_STAGES && !shares.is_empty(),
            "a round with too many stages, or without members"
        );
        for done in &progress.done {
            done.store(0, Ordering::Relaxed);
        }
        progress.stop.store(false, Ordering::Relaxed);
        let round = Round { stages, work, shares, progress };
        (0..shares.len()).for_each(|member| round.deal(member));
        round
    }

    /// Assigns a member its share.
    fn deal(&self, member: usize) {
        for (stage, next) in self.shares[member].next.iter().enumerate().take(self.stages.len()) {
            next.store(self.start(stage, member), Ordering::Relaxed);
        }
    }

    /// First part of a member's share of a stage.
    fn start(&self, stage: usize, member: usize) -> usize {
        share_start(self.stages[stage], self.shares.len(), member)
    }

    /// Runs one member: its share of each stage, then the shares of others. A panic is kept for the caller.
    pub(crate) fn join(&self, member: usize) {
        if member >= self.shares.len() {
            return;
        }
        BUSY.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| self.stages(member)));
        BUSY.set(false);
        if let Err(panic) = result {
            *self.progress.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            self.progress.stop.store(true, Ordering::Release);
        }
    }

    /// Returns the panic of the work, if any, once all members are done.
    pub(crate) fn panic(&self) -> Option<Panic> {
        if !self.progress.stop.load(Ordering::Acquire) {
            return None;
        }
        self.progress.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn stages(&self, member: usize) {
        for (stage, &parts) in self.stages.iter().enumerate() {
            let mut did = self.take(stage, member);
            if stage + 1 == self.stages.len() {
                // With one part for each member, the caller does the remaining parts: for others, searching costs more
                // than it gains.
                if member == 0 || parts > self.shares.len() {
                    self.help(stage, member);
                }
                return;
            }
            let done = &self.progress.done[stage];
            let mut looks = 0;
            loop {
                if did > 0 {
                    done.fetch_add(did, Ordering::Release);
                }
                for _ in 0..LOOKS {
                    if done.load(Ordering::Acquire) == parts {
                        break;
                    }
                    std::hint::spin_loop();
                }
                if done.load(Ordering::Acquire) == parts {
                    break;
                }
                if self.progress.stop.load(Ordering::Acquire) {
                    return;
                }
                looks += LOOKS;
                if looks > PATIENCE {
                    thread::yield_now();
                }
                did = self.help(stage, member);
            }
        }
    }

    /// Does the rest of a member's share of a stage, and returns the number of parts.
    fn take(&self, stage: usize, of: usize) -> usize {
        let end = self.start(stage, of + 1);
        let next = &self.shares[of].next[stage];
        let mut did = 0;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= end {
                return did;
            }
            (self.work)(stage, part);
            did += 1;
        }
    }

    /// Does parts of a stage that others have not begun, and returns their number.
    fn help(&self, stage: usize, member: usize) -> usize {
        let members = self.shares.len();
        let others = (member + 1..members).chain(0..member);
        let left =
            |of: &usize| self.shares[*of].next[stage].load(Ordering::Relaxed) < self.start(stage, *of + 1);
        others.filter(left).map(|of| self.take(stage, of)).sum()
    }
}

/// Whether this thread is doing parts of a round.
pub(crate) fn is_busy() -> bool {
    BUSY.get()
}

/// Does all parts on this thread.
pub(crate) fn run_on_caller(stages: &[usize], work: Work<'_>) {
    for (stage, &parts) in stages.iter().enumerate() {
        (0..parts).for_each(|part| work(stage, part));
    }
}

/// First part of the `index`-th of `shares` even shares of `0..total`.
pub(crate) fn share_start(total: usize, shares: usize, index: usize) -> usize {
    let shares = shares.max(1);
    match total.checked_mul(index) {
        Some(product) => product / shares,
        None => (total as u128 * index as u128 / shares as u128) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes counters for the parts that are done.
    fn counts(stages: &[usize]) -> Vec<Vec<AtomicUsize>> {
        stages.iter().map(|&parts| (0..parts).map(|_| AtomicUsize::new(0)).collect()).collect()
    }

    #[test]
    fn one_member_does_all_that_others_do_not_come_to() {
        for stages in [&[7][..], &[3, 0, 9], &[1, 1, 1, 1]] {
            let counts = counts(stages);
            let shares: Vec<Share> = (0..5).map(|_| Share::default()).collect();
            let progress = Progress::default();
            let work = |stage: usize, part: usize| {
                counts[stage][part].fetch_add(1, Ordering::Relaxed);
            };
            let round = Round::new(stages, &work, &shares, &progress);
            // Any member may do it; the caller comes last.
            round.join(3);
            round.join(0);
            round.join(100);
            assert!(counts.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 1), "{stages:?}");
        }
    }

    #[test]
    fn a_stage_begins_when_the_one_before_is_done() {
        let members = 4;
        let stages = [6, 11, 3];
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let done = [const { AtomicUsize::new(0) }; 3];
            let shares: Vec<Share> = (0..members).map(|_| Share::default()).collect();
            let progress = Progress::default();
            let work = |stage: usize, _: usize| {
                for before in 0..stage {
                    assert_eq!(done[before].load(Ordering::Relaxed), stages[before]);
                }
                done[stage].fetch_add(1, Ordering::Relaxed);
            };
            let round = Round::new(&stages, &work, &shares, &progress);
            thread::scope(|scope| {
                for member in 0..members {
                    scope.spawn(move || round.join(member));
                }
            });
            assert!(round.panic().is_none());
            assert_eq!(done.map(AtomicUsize::into_inner), stages);
        }
    }

    #[test]
    fn nobody_waits_for_a_stage_that_panicked() {
        let shares: Vec<Share> = (0..3).map(|_| Share::default()).collect();
        let progress = Progress::default();
        let later = AtomicUsize::new(0);
        let work = |stage: usize, part: usize| {
            assert!(stage > 0 || part != 4, "part 4");
            later.fetch_add(stage, Ordering::Relaxed);
        };
        let round = Round::new(&[6, 6], &work, &shares, &progress);
        thread::scope(|scope| {
            for member in 0..3 {
                scope.spawn(move || round.join(member));
            }
        });
        assert!(round.panic().is_some());
        assert_eq!(later.into_inner(), 0);
    }
}
