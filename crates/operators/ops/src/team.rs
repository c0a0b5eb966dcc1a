//! Threads that stay ready for short pieces of work.
//!
//! A layer of a small model takes some tens of microseconds, about as long as waking a sleeping thread. So threads spin
//! for a while before they go to sleep, and the caller does a share itself.
//!
//! Other processes share the machine. A round is offered to as many threads as it is worth, and the running ones take
//! it up; offers that are still open when all parts are gone are taken back. The caller's only system calls wake
//! sleeping threads, two at most: those that are awake wake the others. Threads do not yield early: a thread that
//! yields may be off its processor for as long as others spin.
//!
//! Callers of several teams share the processors. While n rounds are under way, each is offered to an n-th of the
//! processors, and so are the next few rounds, since the other callers usually come back.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::apart::ProcessorSet;
use crate::round::{PATIENCE, Progress, Round, Share, Work, is_busy, run_on_caller};

/// Duration for which a thread spins before it sleeps: longer than the serial work between two ops of a step.
const WATCH: Duration = Duration::from_micros(200);

/// Number of polls for work between two looks at the clock.
const LOOKS: usize = 32;

/// Number of sleeping threads that one thread wakes.
const WAKES: usize = 2;

/// State of a thread without work.
const IDLE: u32 = 0;
/// State of a thread with an offered round, which may be taken back.
const OFFERED: u32 = 1;
/// State of a thread that does its share; the caller waits for it.
const TAKEN: u32 = 2;

/// Number of rounds for which a team remembers that others ran at the same time.
const REMEMBER: usize = 16;

/// Number of rounds under way, of all teams.
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// The caller and its worker threads.
#[derive(Debug)]
pub(crate) struct Team {
    common: Arc<TeamState>,
    threads: Vec<JoinHandle<()>>,
    /// Number of processors that this process could use when the team was made.
    cores: usize,
    /// Lock of a round, since callers take turns. Holds the number of concurrent rounds last seen, and the number of
    /// rounds for which it still counts.
    turn: Mutex<(usize, usize)>,
}

#[derive(Debug)]
struct TeamState {
    /// One share for each member, the first of which is the caller.
    shares: Box<[Share]>,
    members: Box<[Member]>,
    progress: Progress,
    /// A [`Round`] on the stack of the caller, which does not return while a member uses it.
    round: AtomicPtr<()>,
    /// Number of members that sleep or are about to.
    asleep: AtomicUsize,
    /// The next member to check for sleeping.
    wake: AtomicUsize,
    /// The last processor of the caller.
    here: AtomicUsize,
    stop: AtomicBool,
    watch: Duration,
    apart: ProcessorSet,
}

/// A worker thread. Written only when it goes to sleep.
#[derive(Debug, Default)]
struct Member {
    asleep: AtomicBool,
    /// The thread's handle, set before it first sleeps.
    thread: OnceLock<Thread>,
}

impl Team {
    /// A team of `members`, the caller being one of them.
    pub(crate) fn new(members: usize) -> std::io::Result<Team> {
        // With fewer cores than threads, a spinning thread would keep another from its work.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let watch = if members <= cores { WATCH } else { Duration::ZERO };
        let common = Arc::new(TeamState {
            shares: (0..members).map(|_| Share::default()).collect(),
            members: (0..members).map(|_| Member::default()).collect(),
            progress: Progress::default(),
            round: AtomicPtr::new(std::ptr::null_mut()),
            asleep: AtomicUsize::new(0),
            wake: AtomicUsize::new(0),
            here: AtomicUsize::new(usize::MAX),
            stop: AtomicBool::new(false),
            watch,
            apart: ProcessorSet::new(members),
        });
        let mut team = Team { common, threads: Vec::new(), cores, turn: Mutex::new((0, 0)) };
        let (tell, told) = mpsc::channel::<()>();
        for member in 1..members {
            let (common, tell) = (Arc::clone(&team.common), tell.clone());
            let thread = thread::Builder::new().name(format!("ops {member}"));
            team.threads.push(thread.spawn(move || {
                drop(tell);
                common.worker_loop(member);
            })?);
        }
        drop(tell);
        // Ends when each thread has begun.
        told.iter().for_each(drop);
        Ok(team)
    }

    /// Does all parts of the stages, each once, on this thread and at most `members - 1` others. Work that starts a
    /// nested round does all of it on its own thread.
    ///
    /// # Panics
    ///
    /// `work` panicked, on any thread; all others have finished then.
    pub(crate) fn run(&self, members: usize, stages: &[usize], work: Work<'_>) {
        if is_busy() {
            return run_on_caller(stages, work);
        }
        let mut turn = lock(&self.turn);
        let others = ROUNDS.fetch_add(1, Ordering::Relaxed);
        let (seen, left) = *turn;
        *turn = if others > 0 { (others, REMEMBER) } else { (seen, left.saturating_sub(1)) };
        let others = if turn.1 > 0 { turn.0 } else { 0 };
        let most = self.common.members.len();
        let fair = if others == 0 { most } else { (most.max(self.cores) / (others + 1)).max(1) };
        let members = members.min(most).min(fair).max(1);
        let common = &*self.common;
        let round = Round::new(stages, work, &common.shares[..members], &common.progress);
        common.offer(&round, members);
        round.join(0);
        common.take_back(members);
        ROUNDS.fetch_sub(1, Ordering::Relaxed);
        let panic = round.panic();
        drop(turn);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::SeqCst);
        self.threads.iter().for_each(|thread| thread.thread().unpark());
        // Panics of their work were passed on by their rounds.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl TeamState {
    /// Offers a round to members `1..members`, and begins to wake the sleeping ones.
    fn offer(&self, round: &Round<'_>, members: usize) {
        if members == 1 {
            return;
        }
        let here = self.apart.here();
        if self.here.load(Ordering::Relaxed) != here {
            self.here.store(here, Ordering::Relaxed);
        }
        self.round.store(std::ptr::from_ref(round).cast_mut().cast(), Ordering::Relaxed);
        self.wake.store(1, Ordering::Relaxed);
        for share in &self.shares[1..members] {
            share.state.store(OFFERED, Ordering::Release);
        }
        // Either a thread that goes to sleep sees the offer, or this thread sees that it sleeps.
        fence(Ordering::SeqCst);
        self.wake(members);
    }

    /// Wakes some sleeping members of a round that no other thread has woken yet.
    fn wake(&self, members: usize) {
        if self.asleep.load(Ordering::Relaxed) == 0 || self.wake.load(Ordering::Relaxed) >= members {
            return;
        }
        let mut left = WAKES;
        while left > 0 {
            let at = self.wake.fetch_add(1, Ordering::Relaxed);
            if at >= members {
                return;
            }
            let member = &self.members[at];
            if member.asleep.load(Ordering::Relaxed)
                && let Some(thread) = member.thread.get()
            {
                thread.unpark();
                left -= 1;
            }
        }
    }

    /// Takes a round back from the members that have not taken it up, and waits for those that have.
    fn take_back(&self, members: usize) {
        for share in &self.shares[1..members] {
            let mut looks = 0;
            loop {
                match share.state.load(Ordering::Acquire) {
                    IDLE => break,
                    OFFERED => {
                        let back =
                            share.state.compare_exchange(OFFERED, IDLE, Ordering::Relaxed, Ordering::Relaxed);
                        if back.is_ok() {
                            break;
                        }
                    }
                    _ => {}
                }
                looks += 1;
                if looks > PATIENCE {
                    thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Worker loop.
    fn worker_loop(&self, member: usize) {
        let (me, share) = (&self.members[member], &self.shares[member]);
        me.thread.get_or_init(thread::current);
        while self.watch(me, share) {
            let taken = share.state.compare_exchange(OFFERED, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_err() {
                // Taken back.
                continue;
            }
            let round = self.round.load(Ordering::Relaxed).cast_const().cast::<Round<'_>>();
            // SAFETY: the caller stored it before the offer that was taken up above. It stays in `run`, where the round
            // is, until it has taken back each offer or seen the store below.
            let round = unsafe { &*round };
            self.wake(round.shares.len());
            round.join(member);
            share.state.store(IDLE, Ordering::Release);
        }
    }

    /// Spins for an offer, then sleeps until there is one. Returns false at the end of the team.
    fn watch(&self, me: &Member, share: &Share) -> bool {
        let mut start = None;
        loop {
            for _ in 0..LOOKS {
                if share.state.load(Ordering::Relaxed) == OFFERED {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let waited = start.get_or_insert_with(Instant::now).elapsed();
            if waited >= self.watch {
                self.sleep(me, share);
                start = None;
            }
            self.apart.leave(self.here.load(Ordering::Relaxed));
        }
    }

    /// Sleeps until there is an offer or the team ends. The offer may be taken back by then, but another one will
    /// follow.
    fn sleep(&self, me: &Member, share: &Share) {
        me.asleep.store(true, Ordering::Relaxed);
        self.asleep.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if share.state.load(Ordering::Relaxed) == IDLE && !self.stop.load(Ordering::Relaxed) {
            thread::park();
        }
        self.asleep.fetch_sub(1, Ordering::Relaxed);
        me.asleep.store(false, Ordering::Relaxed);
    }
}

/// No code panics while it holds a lock, so that none is ever poisoned.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn every_part_is_done_once_in_each_round() {
        for members in [2, 3, 16] {
            let team = Team::new(members).unwrap();
            let counts: Vec<AtomicUsize> = (0..3 * members + 1).map(|_| AtomicUsize::new(0)).collect();
            for round in 1..=if cfg!(miri) { 5 } else { 400 } {
                if round % 100 == 0 {
                    // Time enough to fall asleep.
                    thread::sleep(2 * WATCH);
                }
                team.run(1 + round % (members + 1), &[counts.len()], &|_, part| {
                    counts[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
            }
        }
    }

    #[test]
    fn threads_that_are_there_share_the_work() {
        // Parts that end only once `members` threads are in one.
        let members = 3;
        let team = Team::new(members).unwrap();
        for _ in 0..if cfg!(miri) { 1 } else { 20 } {
            let inside = AtomicUsize::new(0);
            team.run(members, &[members], &|_, _| {
                inside.fetch_add(1, Ordering::Relaxed);
                while inside.load(Ordering::Relaxed) < members {
                    thread::yield_now();
                }
            });
            thread::sleep(WATCH);
        }
    }

    #[test]
    fn rounds_within_rounds_and_callers_side_by_side_are_served() {
        let team = Team::new(2).unwrap();
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    team.run(2, &[2], &|_, _| {
                        team.run(2, &[2], &|_, _| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    });
                });
            }
        });
        assert_eq!(count.into_inner(), 12);
    }

    #[test]
    fn teams_side_by_side_do_all_their_work() {
        let rounds = if cfg!(miri) { 3 } else { 500 };
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let team = Team::new(4).unwrap();
                    for _ in 0..rounds {
                        team.run(4, &[4, 9], &|_, _| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 3 * rounds * 13);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_works_on() {
        let team = Team::new(3).unwrap();
        for bad in 0..3 {
            let work = |_: usize, part: usize| assert_ne!(part, bad);
            let result = catch_unwind(AssertUnwindSafe(|| team.run(3, &[3, 3], &work)));
            assert!(result.is_err());
            team.run(3, &[3], &|_, _| {});
        }
    }
}
