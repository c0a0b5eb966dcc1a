//! Keeps the threads that work beside a caller away from its processor.
//!
//! A thread that is woken may be put on the processor of who woke it, even where others are idle. It then begins only
//! when the caller waits for it, and two threads take as long as one: seen for seconds on a virtual machine with two
//! processors. So a thread that finds itself where the caller is goes elsewhere, and stays away from there. It does so
//! while it has nothing to do: the caller only says where it is, which asks nothing of the system.

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Where threads may be.
    #[derive(Debug)]
    pub(crate) struct Apart {
        allowed: Option<CpuSet>,
    }

    impl Apart {
        /// For threads of this thread's processors, of which there are as many as `members` or more.
        pub(crate) fn new(members: usize) -> Apart {
            let allowed = sched_getaffinity(None).ok();
            let enough = |set: &CpuSet| set.count() as usize >= members && members > 1;
            Apart { allowed: allowed.filter(enough) }
        }

        /// The processor that this thread is on.
        pub(crate) fn here(&self) -> usize {
            if self.allowed.is_some() { sched_getcpu() } else { usize::MAX }
        }

        /// Moves this thread away from the processor of the caller, if it is there.
        pub(crate) fn leave(&self, caller: usize) {
            let Some(allowed) = self.allowed else { return };
            if caller >= CpuSet::MAX_CPU || sched_getcpu() != caller {
                return;
            }
            let mut others = allowed;
            others.unset(caller);
            // A refusal costs speed only.
            let _ = sched_setaffinity(None, &others);
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

        pub(crate) fn here(&self) -> usize {
            usize::MAX
        }

        pub(crate) fn leave(&self, _: usize) {}
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::Apart;
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::Apart;
