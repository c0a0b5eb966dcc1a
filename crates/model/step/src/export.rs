//! Exports of a step: as a picture ([`dot`]), for scripts ([`json`]), for tools that replay it ([`execution`]).

pub mod dot;
mod edges;
pub mod execution;
pub mod json;
mod order;

pub use self::edges::{Data, data};

use steptime_graph::execution::ExecutionGraph;

use crate::schedule::ScheduledStep;
use crate::step::StepIr;

/// A step, with further data for exports.
#[derive(Debug, Clone, Copy)]
pub struct Export<'s> {
    /// Name of the step.
    pub name: &'s str,
    /// The step itself.
    pub step: &'s StepIr,
    /// Its schedule, before any of it is captured as a CUDA graph.
    pub scheduled: &'s ScheduledStep,
    /// The execution trace of its tensors and nodes.
    pub trace: Option<&'s ExecutionGraph>,
}
