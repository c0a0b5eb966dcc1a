//! The steps of a rank.

use steptime_trace::{ActivityKind, Nanos, Trace};

use super::device::Device;
use super::spans::Spans;
use super::windows::Windows;

/// One step of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRow {
    /// Its number.
    pub step: u32,
    /// How it was found: `marked`, `repeated` or `whole`.
    pub found: &'static str,
    /// What tells its length: `host` or `device`.
    pub clock: &'static str,
    /// When it begins, on the host.
    pub start: Nanos,
    /// How long it lasts, by its clock.
    pub dur: Nanos,
    /// What the devices do in it; `None` where that is not known.
    pub busy: Option<Busy>,
    /// Ops and annotations.
    pub ops: u64,
    /// Calls into the runtime and the driver.
    pub calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies and fills.
    pub copies: u64,
    /// Calls that launch a kernel of which the device has no record.
    pub unrecorded: u64,
    /// What was repaired in the trace, in all of it.
    pub repairs: u64,
}

/// What devices do in a step; of several devices the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Busy {
    /// How long they run anything.
    pub active: Nanos,
    /// How long they run nothing.
    pub idle: Nanos,
    /// How long they run something else than collectives.
    pub compute: Nanos,
    /// How long they run collectives.
    pub comm: Nanos,
    /// How long they run collectives and nothing else.
    pub comm_exposed: Nanos,
}

/// The rows.
pub(super) fn rows(trace: &Trace, windows: &Windows, device: &Device) -> Vec<StepRow> {
    let spans = Spans::of(windows, device);
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

/// What the devices do from a beginning to an end; `None` where nothing was recorded of it.
fn busy(device: &Device, (begin, end): (Nanos, Nanos)) -> Option<Busy> {
    if !device.running.iter().any(|running| running.all.meet(begin, end)) {
        return None;
    }
    let mut sum = Busy::default();
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
