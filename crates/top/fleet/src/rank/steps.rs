//! The steps of a rank.

use steptime_graph::StepWindow;
use steptime_trace::{ActivityKind, Nanos, Trace};

use super::device::Device;
use super::windows::Windows;

/// One step of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepRow {
    /// Its number.
    pub step: u32,
    /// How it was found: `marked`, `repeated` or `whole`.
    pub found: &'static str,
    /// When it begins, on the host.
    pub start: Nanos,
    /// Until the next one begins, or its mark ends.
    pub dur: Nanos,
    /// How long the devices run something that it launched.
    pub active: Nanos,
    /// How long they run nothing at all before something that it launched.
    pub idle: Nanos,
    /// How long they run something else than collectives.
    pub compute: Nanos,
    /// How long they run collectives.
    pub comm: Nanos,
    /// How long they run collectives and nothing else.
    pub comm_exposed: Nanos,
    /// Ops and annotations.
    pub ops: u64,
    /// Calls into the runtime and the driver.
    pub calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies and fills.
    pub copies: u64,
}

/// The rows.
pub(super) fn rows(trace: &Trace, windows: &Windows, device: &Device) -> Vec<StepRow> {
    let mut rows: Vec<StepRow> = windows.all().iter().map(|window| row(window, windows.found())).collect();
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
        let idle = device.idle[at];
        each(device.place(at), &mut |row| {
            row.idle += idle;
            match kind {
                ActivityKind::Kernel => row.kernels += 1,
                ActivityKind::Memcpy | ActivityKind::Memset => row.copies += 1,
            }
        });
    }
    for (row, busy) in rows.iter_mut().zip(&device.busy) {
        (row.active, row.compute, row.comm) = (busy.active, busy.compute, busy.comm);
        row.comm_exposed = busy.active - busy.compute;
    }
    rows
}

fn row(window: &StepWindow, found: &'static str) -> StepRow {
    StepRow {
        step: window.number,
        found,
        start: window.start,
        dur: window.end - window.start,
        active: Nanos::ZERO,
        idle: Nanos::ZERO,
        compute: Nanos::ZERO,
        comm: Nanos::ZERO,
        comm_exposed: Nanos::ZERO,
        ops: 0,
        calls: 0,
        kernels: 0,
        copies: 0,
    }
}
