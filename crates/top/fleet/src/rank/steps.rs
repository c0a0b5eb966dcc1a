//! The steps of a rank.

use steptime_trace::{ActivityKind, Nanos, Trace};

use super::device::Device;
use super::spans::Spans;
use super::step_of_time::Windows;

/// One step of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRow {
    /// Number of the step.
    pub step: u32,
    /// Method by which it was found: `marked`, `repeated` or `whole`.
    pub found: &'static str,
    /// Clock of its duration: `host` or `device`.
    pub clock: &'static str,
    /// Beginning, on the host.
    pub start: Nanos,
    /// Duration, by its clock.
    pub dur: Nanos,
    /// Device times in it; `None` if not known.
    pub busy: Option<BusyTimes>,
    /// Number of ops and annotations.
    pub ops: u64,
    /// Number of calls into the runtime and the driver.
    pub calls: u64,
    /// Number of kernels.
    pub kernels: u64,
    /// Number of copies and fills.
    pub copies: u64,
    /// Number of calls that launch a kernel without a device record.
    pub unrecorded: u64,
    /// Number of repairs in the whole trace.
    pub repairs: u64,
}

/// Device times in a step, summed over devices.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct BusyTimes {
    /// Time in which they run anything.
    pub active: Nanos,
    /// Time in which they run nothing.
    pub idle: Nanos,
    /// Time in which they run anything but collectives.
    pub compute: Nanos,
    /// Time in which they run collectives.
    pub comm: Nanos,
    /// Time in which they run only collectives.
    pub comm_exposed: Nanos,
}

pub(super) fn rows(trace: &Trace, windows: &Windows, device: &Device) -> Vec<StepRow> {
    let spans = Spans::find(windows, device);
    let repairs = trace.notes.repairs();
    let each = windows.all().iter().zip(&spans.all).map(|(window, &(begin, end))| StepRow {
        step: window.number,
        found: windows.found(),
        clock: spans.clock,
        start: window.start,
        dur: end - begin,
        busy: None,
        ops: 0,
        calls: 0,
        kernels: 0,
        copies: 0,
        unrecorded: 0,
        repairs,
    });
    let mut rows: Vec<StepRow> = each.collect();
    let mut each = |place: Option<u32>, add: &mut dyn FnMut(&mut StepRow)| {
        if let Some(place) = place {
            add(&mut rows[place as usize]);
        }
    };
    for &start in &trace.ops.start {
        each(windows.at(start), &mut |row| row.ops += 1);
    }
    for &start in &trace.calls.start {
        each(windows.at(start), &mut |row| row.calls += 1);
    }
    for (at, &kind) in trace.activities.kind.iter().enumerate() {
        each(device.place(at), &mut |row| match kind {
            ActivityKind::Kernel => row.kernels += 1,
            ActivityKind::Memcpy | ActivityKind::Memset => row.copies += 1,
        });
    }
    for ((row, launched), &span) in rows.iter_mut().zip(&device.launched).zip(&spans.all) {
        row.unrecorded = launched.unrecorded;
        row.busy = launched.is_recorded().then(|| busy(device, span)).flatten();
    }
    rows
}

/// Returns the device times from a beginning to an end; `None` if nothing was recorded in it.
fn busy(device: &Device, (begin, end): (Nanos, Nanos)) -> Option<BusyTimes> {
    if !device.running.iter().any(|running| running.all.overlaps(begin, end)) {
        return None;
    }
    let mut sum = BusyTimes::default();
    for running in &device.running {
        let [active, compute, comm] =
            [&running.all, &running.compute, &running.comm].map(|intervals| intervals.within(begin, end));
        sum.active += active;
        sum.idle += end - begin - active;
        sum.compute += compute;
        sum.comm += comm;
        sum.comm_exposed += active - compute;
    }
    Some(sum)
}
