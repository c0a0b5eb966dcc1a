//! Keeps worker threads away from the caller's processor.
//!
//! A woken thread may be put on the processor of the thread that woke it, even where others are idle. It then begins
//! only when the caller waits for it, and two threads take as long as one: this lasted for seconds on a virtual machine
//! with two processors. So a thread that finds itself on the caller's processor moves elsewhere, and stays away. It
//! does so while it is idle: the caller only publishes its processor, without a system call.

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Processors on which threads may run.
    #[derive(Debug)]
    pub(crate) struct ProcessorSet {
        allowed: Option<CpuSet>,
    }

    impl ProcessorSet {
        /// Makes a set for threads on this thread's processors, if there are at least `members` processors.
        pub(crate) fn new(members: usize) -> ProcessorSet {
            let allowed = sched_getaffinity(None).ok();
            let enough = |set: &CpuSet| set.count() as usize >= members && members > 1;
            ProcessorSet { allowed: allowed.filter(enough) }
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
            // A failure costs speed only.
            let _ = sched_setaffinity(None, &others);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod elsewhere {
    /// Leaves the placement to the system.
    #[derive(Debug)]
    pub(crate) struct ProcessorSet;

    impl ProcessorSet {
        pub(crate) fn new(_: usize) -> ProcessorSet {
            ProcessorSet
        }

        pub(crate) fn here(&self) -> usize {
            usize::MAX
        }

        pub(crate) fn leave(&self, _: usize) {}
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use elsewhere::ProcessorSet;
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::ProcessorSet;
