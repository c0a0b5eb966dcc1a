//! A stream of the device: its running activity and its queue.

use steptime_graph::ActivityId;
use steptime_trace::Nanos;

use crate::cause::MarkCause;

/// A time not yet known.
pub(crate) const NEVER: Nanos = Nanos(i64::MIN / 4);

/// A time that is not known before the device has advanced.
pub(crate) const UNKNOWN: Nanos = Nanos(i64::MAX / 4);

/// A stream during simulation.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    /// Time at which all launched activities are done.
    pub(crate) free: Nanos,
    /// Last activity, and whether it is of this step.
    pub(crate) last: Option<(ActivityId, bool)>,
    /// Ends of the last activities, as a ring of the queue's depth.
    ring: Vec<Nanos>,
    head: usize,
}

impl Stream {
    /// Creates an empty stream with a queue of the given depth.
    pub(crate) fn idle(depth: usize) -> Stream {
        Stream { free: NEVER, last: None, ring: vec![NEVER; depth], head: 0 }
    }

    /// Begins a step: earlier activities now belong to the step before.
    pub(crate) fn begin_step(&mut self) {
        if let Some((_, this_step)) = &mut self.last {
            *this_step = false;
        }
    }

    /// Adds an activity with a known end.
    pub(crate) fn push(&mut self, activity: ActivityId, end: Nanos) {
        self.free = self.free.max(end);
        self.last = Some((activity, true));
        self.ring[self.head] = end;
        self.head = (self.head + 1) % self.ring.len();
    }

    /// Adds an activity with an unknown end; returns its place in the ring, for [`Stream::done`].
    pub(crate) fn queue(&mut self, activity: ActivityId) -> usize {
        let slot = self.head;
        self.last = Some((activity, true));
        self.ring[slot] = UNKNOWN;
        self.head = (slot + 1) % self.ring.len();
        slot
    }

    /// Sets the end of a queued activity.
    pub(crate) fn done(&mut self, slot: usize, end: Nanos) {
        self.free = self.free.max(end);
        self.ring[slot] = end;
    }

    /// Returns the time from which there is room for one more launch.
    pub(crate) fn full_until(&self) -> Nanos {
        self.ring[self.head]
    }

    /// Returns the cause of a host's wait for the whole stream.
    pub(crate) fn last_cause(&self) -> MarkCause {
        match self.last {
            Some((activity, true)) => MarkCause::Device(activity),
            Some((activity, false)) => MarkCause::DeviceBefore(activity),
            None => MarkCause::Host,
        }
    }
}
