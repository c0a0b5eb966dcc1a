//! Threads that stand by for short pieces of work.
//!
//! A layer of a small model takes some tens of microseconds, about what it takes to wake a sleeping thread. So threads
//! watch for the next piece for a while before they go to sleep, and the caller does a share itself.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::apart::{self, Apart};

/// How long a thread watches for work before it sleeps: longer than the serial work between two ops of a step.
const WATCH: Duration = Duration::from_micros(200);

/// Looks at the clock are this many looks at the work apart.
const LOOKS: usize = 64;

/// The work of one round, called with the number of each thread.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

thread_local! {
    /// Whether this thread is doing a share of a round, of whatever team.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// The caller and some threads beside it.
#[derive(Debug)]
pub(crate) struct Team {
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
    /// The same threads, once each has begun.
    started: Vec<apart::Thread>,
    apart: Apart,
    /// Held during a round: callers take turns.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Common {
    /// Counts rounds; a change is the sign to begin.
    round: AtomicUsize,
    /// A [`Work`] on the stack of the caller, who stays there until `left` is 0.
    work: AtomicPtr<()>,
    /// Threads that have not finished this round.
    left: AtomicUsize,
    asleep: AtomicUsize,
    bed: Mutex<()>,
    alarm: Condvar,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    watch: Duration,
}

impl Team {
    /// A team of `members`, the caller being one of them.
    pub(crate) fn new(members: usize) -> std::io::Result<Team> {
        // Where threads have to share cores, one that watches keeps another from its work.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let watch = if members <= cores { WATCH } else { Duration::ZERO };
        let common = Arc::new(Common {
            round: AtomicUsize::new(0),
            work: AtomicPtr::new(std::ptr::null_mut()),
            left: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            bed: Mutex::new(()),
            alarm: Condvar::new(),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            watch,
        });
        let (threads, started) = (Vec::new(), Vec::new());
        let mut team = Team { common, threads, started, apart: Apart::new(members), turn: Mutex::new(()) };
        let (tell, told) = mpsc::channel();
        for member in 1..members {
            let (common, tell) = (Arc::clone(&team.common), tell.clone());
            let thread = thread::Builder::new().name(format!("ops {member}"));
            team.threads.push(thread.spawn(move || {
                // The team that was listening is gone where another thread could not be started.
                let _ = tell.send(apart::Thread::current());
                drop(tell);
                common.serve(member);
            })?);
        }
        drop(tell);
        team.started = told.iter().collect();
        Ok(team)
    }

    /// Calls `work` once with each of `0..members`, 0 here and the others beside. Work that itself asks for a round gets
    /// all of it done on its own thread.
    ///
    /// # Panics
    ///
    /// `work` did, on any thread; all others have finished then.
    pub(crate) fn run(&self, work: Work<'_>) {
        let members = self.threads.len() + 1;
        if BUSY.get() {
            return (0..members).for_each(work);
        }
        let turn = lock(&self.turn);
        self.apart.keep(&self.started);
        let common = &*self.common;
        common.left.store(self.threads.len(), Ordering::Relaxed);
        common.work.store(std::ptr::from_ref(&work).cast_mut().cast(), Ordering::Relaxed);
        common.begin();
        let own = share(work, 0);
        common.wait(|| common.left.load(Ordering::Acquire) == 0, thread::yield_now);
        let other = lock(&common.panic).take();
        drop(turn);
        if let Some(panic) = own.err().or(other) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::Relaxed);
        self.common.begin();
        // A panic of a thread was passed on by the round it happened in.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Common {
    /// Gives the sign to begin, and wakes who is asleep. Sequentially consistent, as is `sleep`: either the sleeper sees
    /// the new round, or it is seen here.
    fn begin(&self) {
        self.round.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.bed));
            self.alarm.notify_all();
        }
    }

    /// What a thread does all its life.
    fn serve(&self, member: usize) {
        for seen in 0.. {
            self.wait(|| self.round.load(Ordering::Acquire) != seen, || self.sleep(seen));
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let work = self.work.load(Ordering::Relaxed).cast_const().cast::<Work<'_>>();
            // SAFETY: the caller of this round stays in `run`, where the work lies, until `left` is 0.
            if let Err(panic) = share(unsafe { *work }, member) {
                *lock(&self.panic) = Some(panic);
            }
            self.left.fetch_sub(1, Ordering::Release);
        }
    }

    /// Watches until `done`; does something else between two looks once it takes long.
    fn wait(&self, done: impl Fn() -> bool, otherwise: impl Fn()) {
        let mut start = None;
        while !done() {
            let start = *start.get_or_insert_with(Instant::now);
            if start.elapsed() >= self.watch {
                otherwise();
            } else {
                for _ in 0..LOOKS {
                    if done() {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Sleeps until the round is another.
    fn sleep(&self, seen: usize) {
        let mut bed = lock(&self.bed);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while self.round.load(Ordering::SeqCst) == seen {
            bed = self.alarm.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Does one share, with the panic it ended in.
fn share(work: Work<'_>, member: usize) -> thread::Result<()> {
    BUSY.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| work(member)));
    BUSY.set(false);
    result
}

/// Nothing panics while it holds a lock, so that none is ever poisoned.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_works_once_in_each_round() {
        for members in [2, 3, 7] {
            let team = Team::new(members).unwrap();
            let counts: Vec<AtomicUsize> = (0..members).map(|_| AtomicUsize::new(0)).collect();
            for round in 1..=if cfg!(miri) { 5 } else { 200 } {
                if round % 50 == 0 {
                    // Time to fall asleep.
                    thread::sleep(2 * WATCH);
                }
                team.run(&|member| {
                    counts[member].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
            }
        }
    }

    #[test]
    fn rounds_within_rounds_and_callers_side_by_side_are_served() {
        let team = Team::new(2).unwrap();
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    team.run(&|_| {
                        team.run(&|_| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                });
            }
        });
        assert_eq!(count.into_inner(), 12);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_works_on() {
        let team = Team::new(3).unwrap();
        for bad in 0..3 {
            let result = catch_unwind(AssertUnwindSafe(|| team.run(&|member| assert_ne!(member, bad))));
            assert!(result.is_err());
            team.run(&|_| {});
        }
    }
}
