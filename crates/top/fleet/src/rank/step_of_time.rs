//! Assignment of times to steps.

use steptime_graph::{StepSource, StepWindow, step_windows};
use steptime_trace::{Nanos, Trace};

/// The steps of a trace, on the host's clock.
pub(super) struct Windows {
    windows: Vec<StepWindow>,
    found: &'static str,
}

impl Windows {
    pub(super) fn find(trace: &Trace) -> Windows {
        let (windows, source) = step_windows(trace).unwrap_or((Vec::new(), StepSource::Whole));
        let found = match source {
            StepSource::Marked => "marked",
            StepSource::Repeated => "repeated",
            StepSource::Whole => "whole",
        };
        Windows { windows, found }
    }

    /// Returns the steps, in order.
    pub(super) fn all(&self) -> &[StepWindow] {
        &self.windows
    }

    /// Returns the method by which they were found.
    pub(super) fn found(&self) -> &'static str {
        self.found
    }

    /// Returns the place of the step in which a time is.
    pub(super) fn at(&self, time: Nanos) -> Option<u32> {
        let after = self.windows.partition_point(|window| window.start <= time);
        let place = after.checked_sub(1)?;
        (time < self.windows[place].end).then_some(place as u32)
    }

    /// Returns the number of a step by its place.
    pub(super) fn number(&self, place: Option<u32>) -> Option<u32> {
        place.map(|place| self.windows[place as usize].number)
    }
}
