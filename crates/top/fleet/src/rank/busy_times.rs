//! Busy times of a device, merged into intervals.

use steptime_trace::Nanos;

/// Busy intervals of one device, in the order of time.
pub(super) struct BusyIntervals {
    pub device: u32,
    /// All activities.
    pub all: Intervals,
    /// All activities but collectives.
    pub compute: Intervals,
    /// Collectives.
    pub comm: Intervals,
}

impl BusyIntervals {
    pub(super) fn new(device: u32) -> BusyIntervals {
        BusyIntervals {
            device,
            all: Intervals::default(),
            compute: Intervals::default(),
            comm: Intervals::default(),
        }
    }

    /// Adds an activity, which must not begin before those added earlier.
    pub(super) fn add(&mut self, start: Nanos, end: Nanos, collective: bool) {
        self.all.add(start, end);
        if collective { &mut self.comm } else { &mut self.compute }.add(start, end);
    }
}

/// Disjoint intervals, in order.
#[derive(Default)]
pub(super) struct Intervals(Vec<(Nanos, Nanos)>);

impl Intervals {
    fn add(&mut self, start: Nanos, end: Nanos) {
        match self.0.last_mut().filter(|last| start <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => self.0.push((start, end)),
        }
    }

    /// Returns the end of the last interval.
    pub(super) fn end(&self) -> Option<Nanos> {
        self.0.last().map(|&(_, end)| end)
    }

    /// Returns the part of a time that the intervals cover.
    pub(super) fn within(&self, start: Nanos, end: Nanos) -> Nanos {
        self.0[self.first(start)..]
            .iter()
            .take_while(|&&(began, _)| began < end)
            .map(|&(began, ended)| ended.min(end) - began.max(start))
            .sum()
    }

    /// Whether any interval overlaps a time.
    pub(super) fn overlaps(&self, start: Nanos, end: Nanos) -> bool {
        self.0.get(self.first(start)).is_some_and(|&(began, _)| began < end)
    }

    fn first(&self, start: Nanos) -> usize {
        self.0.partition_point(|&(_, ended)| ended <= start)
    }
}
