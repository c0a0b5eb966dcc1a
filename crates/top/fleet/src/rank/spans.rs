//! Beginnings and ends of steps.

use steptime_graph::is_timed_by_device;
use steptime_trace::Nanos;

use super::device::Device;
use super::step_of_time::Windows;

/// Beginning and end of each step, by its place.
pub(super) struct Spans {
    /// Clock of the times: `host`, or `device` if the host runs ahead of the device.
    pub clock: &'static str,
    /// Beginnings and ends.
    pub all: Vec<(Nanos, Nanos)>,
}

impl Spans {
    /// Finds the times by the host's marks; if the host runs ahead, from the device's end of one step to its end of the next.
    pub(super) fn find(windows: &Windows, device: &Device) -> Spans {
        let windows = windows.all();
        let starts: Vec<Nanos> = windows.iter().map(|window| window.start).collect();
        let ends: Vec<Option<Nanos>> = device.launched.iter().map(|launched| launched.end).collect();
        let active: Vec<Nanos> = device.launched.iter().map(|launched| launched.active).collect();
        if is_timed_by_device(&starts, &ends, &active) {
            let mut begin = starts[0];
            let each = ends.into_iter().flatten().map(|end| (std::mem::replace(&mut begin, end), end));
            return Spans { clock: "device", all: each.collect() };
        }
        let mut all: Vec<(Nanos, Nanos)> = windows.iter().map(|window| (window.start, window.end)).collect();
        // A lone step lasts until all of its activities are done: no next step marks its end.
        if let [(_, end)] = &mut all[..] {
            *end = ends[0].map_or(*end, |done| done.max(*end));
        }
        Spans { clock: "host", all }
    }
}
