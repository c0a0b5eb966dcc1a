//! Threads of the caller's.

use std::panic::resume_unwind;

use crate::round::{Progress, Round, Share, Work, is_busy, run_on_caller};

/// Existing threads: a pool of rayon's, those of OpenMP, or any other. [`Cpu::on`](crate::Cpu::on) makes operators use
/// them, so that a process does not need two pools that compete for the processors.
///
/// Results do not depend on the pool: the number, order and threads of its calls decide only how the work is
/// distributed. Work that no call has done is done by the thread that started the round.
///
/// ```
/// use std::num::NonZero;
/// use std::thread;
///
/// use steptime_ops::{Cpu, Pool};
///
/// /// New threads for each piece of work: correct, and slow.
/// struct Scoped(NonZero<usize>);
///
/// impl Pool for Scoped {
///     fn threads(&self) -> usize {
///         self.0.get()
///     }
///
///     fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
///         thread::scope(|scope| {
///             for member in 1..count {
///                 scope.spawn(move || work(member));
///             }
///             work(0);
///         });
///     }
/// }
///
/// let cpu = Cpu::on(Scoped(thread::available_parallelism()?));
/// # let _ = cpu;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// With rayon, whose threads also take other remaining work meanwhile:
///
/// ```ignore
/// impl Pool for Rayon {
///     fn threads(&self) -> usize {
///         self.0.current_num_threads()
///     }
///
///     fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
///         self.0.in_place_scope(|scope| {
///             for member in 1..count {
///                 scope.spawn(move |_| work(member));
///             }
///             work(0);
///         });
///     }
/// }
/// ```
pub trait Pool: Send + Sync {
    /// Number of threads, including the calling one.
    fn threads(&self) -> usize;

    /// Calls `work` once with each of `0..count`, in parallel if there are threads, and returns when all calls have
    /// returned.
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// Does all parts of the stages on at most `members` threads of a pool.
///
/// # Panics
///
/// `work` panicked; all calls have ended then.
pub(crate) fn run(pool: &dyn Pool, members: usize, stages: &[usize], work: Work<'_>) {
    if is_busy() {
        return run_on_caller(stages, work);
    }
    let shares: Vec<Share> = (0..members).map(|_| Share::default()).collect();
    let progress = Progress::default();
    let round = Round::new(stages, work, &shares, &progress);
    pool.run(members, &|member| round.join(member));
    // Parts that no call has begun.
    round.join(0);
    if let Some(panic) = round.panic() {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::Cpu;

    /// Order and threads of a pool's calls.
    #[derive(Clone, Copy)]
    enum Way {
        SideBySide,
        OneAfterTheOther,
        Backwards,
        TwiceAndMore,
        Never,
    }

    struct Odd(Way);

    impl Pool for Odd {
        fn threads(&self) -> usize {
            5
        }

        fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
            match self.0 {
                Way::SideBySide => thread::scope(|scope| {
                    (0..count).for_each(|member| drop(scope.spawn(move || work(member))));
                }),
                Way::OneAfterTheOther => (0..count).for_each(work),
                Way::Backwards => (0..count).rev().for_each(work),
                Way::TwiceAndMore => (0..2 * count).chain(0..count).for_each(work),
                Way::Never => {}
            }
        }
    }

    #[test]
    fn every_part_is_done_once_however_a_pool_calls() {
        for way in [Way::SideBySide, Way::OneAfterTheOther, Way::Backwards, Way::TwiceAndMore, Way::Never] {
            let cpu = Cpu::on(Odd(way));
            assert_eq!(cpu.threads(), 5);
            for parts in [1, 4, 5, 23] {
                let done: Vec<AtomicUsize> = (0..3 * parts).map(|_| AtomicUsize::new(0)).collect();
                cpu.stages(5, &[parts, 2 * parts], |stage, part| {
                    done[stage * parts + part].fetch_add(1, Ordering::Relaxed);
                    // A nested round runs on this thread.
                    cpu.run(2, |_| {});
                });
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    #[should_panic(expected = "part 3")]
    fn a_panic_on_a_pool_reaches_the_caller() {
        Cpu::on(Odd(Way::SideBySide)).run(9, |part| assert!(part != 3, "part 3"));
    }
}
