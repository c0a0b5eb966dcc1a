//! A stream of the device: what runs on it, and what waits in its queue.

use steptime_graph::ActivityId;
use steptime_trace::Nanos;

use crate::cause::MarkCause;

/// A time not yet known.
pub(crate) const NEVER: Nanos = Nanos(i64::MIN / 4);

/// A time that is not known before the device has gone on.
pub(crate) const UNKNOWN: Nanos = Nanos(i64::MAX / 4);

/// A stream while it is simulated.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// When all that was launched so far is done.
    pub(crate) free: Nanos,
    /// The last activity, and whether it is of this step.
    pub(crate) last: Option<(ActivityId, bool)>,
    /// Ends of all activities so far, as a ring of the queue's depth.
    ring: Vec<Nanos>,
    head: usize,
}

impl Stream {
    /// A stream that nothing was launched to, with a queue of a depth.
    pub(crate) fn idle(depth: usize) -> Stream {
        Stream { free: NEVER, last: None, ring: vec![NEVER; depth], head: 0 }
    }

    /// From now on what was launched is of the step before.
    pub(crate) fn begin_step(&mut self) {
        if let Some((_, this_step)) = &mut self.last {
            *this_step = false;
        }
    }

    /// Adds an activity that ends at a time.
    pub(crate) fn push(&mut self, activity: ActivityId, end: Nanos) {
        self.free = self.free.max(end);
        self.last = Some((activity, true));
        self.ring[self.head] = end;
        self.head = (self.head + 1) % self.ring.len();
    }

    /// Adds an activity whose end is not known; gives its place in the ring, for [`Stream::done`].
    pub(crate) fn queue(&mut self, activity: ActivityId) -> usize {
        let slot = self.head;
        self.last = Some((activity, true));
        self.ring[slot] = UNKNOWN;
        self.head = (slot + 1) % self.ring.len();
        slot
    }

    /// An activity that was queued ends.
    pub(crate) fn done(&mut self, slot: usize, end: Nanos) {
        self.free = self.free.max(end);
        self.ring[slot] = end;
    }

    /// When there is room for one more launch.
    pub(crate) fn full_until(&self) -> Nanos {
        self.ring[self.head]
    }

    /// What a host waits for that waits for all of it.
    pub(crate) fn last_cause(&self) -> MarkCause {
        match self.last {
            Some((activity, true)) => MarkCause::Device(activity),
            Some((activity, false)) => MarkCause::DeviceBefore(activity),
            None => MarkCause::Host,
        }
    }
}
