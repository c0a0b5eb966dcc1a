//! A step written down for others: to look at ([`dot`]), for scripts ([`json`]), for tools that replay it ([`execution`]).

pub mod dot;
mod edges;
pub mod execution;
pub mod json;
mod order;

pub use self::edges::{Data, data};

use steptime_graph::execution::ExecutionGraph;

use crate::schedule::Scheduled;
use crate::step::Step;

/// A step, and what is known of it beside.
#[derive(Debug, Clone, Copy)]
pub struct Export<'s> {
    /// What to call it.
    pub name: &'s str,
    /// The step.
    pub step: &'s Step,
    /// What runs of it, before any of it is captured as a CUDA graph.
    pub scheduled: &'s Scheduled,
    /// The execution trace that its tensors and nodes are of.
    pub trace: Option<&'s ExecutionGraph>,
}
