//! The rows of one trace, table by table.

mod busy_times;
mod collectives;
mod device;
mod gaps;
mod nest;
mod spans;
mod step_of_time;
mod steps;
mod sums;

use steptime_trace::{OpInputs, Trace};

pub(crate) use collectives::CollectiveRow;
pub(crate) use gaps::GapRow;
pub(crate) use steps::StepRow;
pub(crate) use sums::{KernelRow, OpRow};

use self::device::Device;
use self::nest::Nest;
use self::step_of_time::Windows;

/// A trace with its steps, nested ops and launches. Names in rows are ids of the trace's own table.
pub struct Rank<'t> {
    trace: &'t Trace,
    windows: Windows,
    nest: Nest,
    device: Device,
}

impl<'t> Rank<'t> {
    /// Finds the steps, nested ops and launches of a trace.
    ///
    /// # Errors
    /// If its ops nest too deep.
    pub fn from_trace(trace: &'t Trace) -> Result<Rank<'t>, steptime_graph::Error> {
        let (windows, nest) = (Windows::find(trace), Nest::build(trace)?);
        let device = Device::build(trace, &windows, &nest);
        Ok(Rank { trace, windows, nest, device })
    }

    pub(crate) fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Returns the steps, in order.
    pub(crate) fn steps(&self) -> Vec<StepRow> {
        steps::rows(self.trace, &self.windows, &self.device)
    }

    /// Returns the ops and annotations by step and name.
    pub(crate) fn ops(&self) -> Vec<OpRow> {
        sums::ops(self.trace, &self.windows, &self.nest, &self.device)
    }

    /// Returns the kernels, copies and fills by step, name and stream.
    pub(crate) fn kernels(&self) -> Vec<KernelRow> {
        sums::kernels(self.trace, &self.device)
    }

    /// Returns the collectives, in order of their beginning.
    pub(crate) fn collectives(&self) -> Vec<CollectiveRow> {
        collectives::rows(self.trace, &self.windows, &self.nest, &self.device)
    }

    /// Returns the gaps, in which a stream ran nothing, by device, in order of their end.
    pub(crate) fn gaps(&self) -> Vec<GapRow> {
        gaps::rows(self.trace, &self.nest, &self.device)
    }
}

/// Frees the columns of a trace that no table uses: about a third of its memory. The ids of ops stay: steps without marks
/// are found by them.
pub(crate) fn drop_unused_columns(trace: &mut Trace) {
    let ops = &mut trace.ops;
    (ops.record_function_id, ops.forward_thread) = (Vec::new(), Vec::new());
    ops.sequence = Vec::new();
    trace.calls.external_id = Vec::new();
    trace.activities.external_id = Vec::new();
    trace.activities.graph_node = Vec::new();
    trace.inputs = OpInputs::default();
}
