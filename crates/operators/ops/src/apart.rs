//! Keeps a caller and the threads that work beside it on different processors.
//!
//! A thread that is woken may be put on the processor of who woke it, even where others are idle. It then begins only
//! when the caller waits for it, and two threads take as long as one: seen for seconds on a virtual machine with two
//! processors. So the processor that the caller is on is taken from those that its threads may use.

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// No processor has this number.
    const NOWHERE: usize = usize::MAX;

    /// Who to keep away from the caller, and where it last was.
    #[derive(Debug)]
    pub(crate) struct Apart {
        allowed: Option<CpuSet>,
        last: AtomicUsize,
    }

    impl Apart {
        /// For threads of this thread's processors, of which there are as many as `members` or more.
        pub(crate) fn new(members: usize) -> Apart {
            let allowed = sched_getaffinity(None).ok();
            let enough = |set: &CpuSet| set.count() as usize >= members && members > 1;
            Apart { allowed: allowed.filter(enough), last: AtomicUsize::new(NOWHERE) }
        }

        /// Moves these threads away from the processor that this one runs on, where that is a new one.
        pub(crate) fn keep(&self, threads: &[Thread]) {
            let Some(allowed) = self.allowed else { return };
            let here = sched_getcpu();
            if self.last.swap(here, Ordering::Relaxed) == here {
                return;
            }
            let mut others = allowed;
            if here < CpuSet::MAX_CPU {
                others.unset(here);
            }
            for thread in threads {
                // A refusal costs speed only.
                let _ = sched_setaffinity(Some(thread.0), &others);
            }
        }
    }

    /// A thread, as the system knows it.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Thread(Pid);

    impl Thread {
        /// This one.
        pub(crate) fn current() -> Thread {
            Thread(rustix::thread::gettid())
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    /// Leaves it to the system.
    #[derive(Debug)]
    pub(crate) struct Apart;

    impl Apart {
        pub(crate) fn new(_: usize) -> Apart {
            Apart
        }

        pub(crate) fn keep(&self, _: &[Thread]) {}
    }

    /// A thread.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Thread;

    impl Thread {
        pub(crate) fn current() -> Thread {
            Thread
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::{Apart, Thread};
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::{Apart, Thread};
