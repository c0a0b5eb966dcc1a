//! The tables of a predicted step.

use serde::Serialize;
use steptime_graph::{Module, StepGraph};
use steptime_predict::{Prediction, Step};
use steptime_sim::breakdown::{self, OpCost, PhaseCost};
use steptime_sim::critical::Stretch;
use steptime_trace::Nanos;

use super::super::shared::ms;
use super::super::{slack, stretch_names};

/// A phase or an annotation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Host time, milliseconds.
    pub host_ms: f64,
    /// Device active time of the activities that it launched, milliseconds.
    pub device_ms: f64,
}

/// A module of the model, including all modules inside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleTime {
    /// Its qualified name, such as `DLRM.bottom.0`.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Host time of its ops in both passes, milliseconds.
    pub host_ms: f64,
    /// Time of the device activities of its forward pass, milliseconds.
    pub forward_ms: f64,
    /// Time of the device activities of its backward pass, milliseconds.
    pub backward_ms: f64,
    /// Its part of the critical path, milliseconds.
    pub critical_ms: f64,
}

/// Top-level ops of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Op {
    /// Their name.
    pub name: String,
    /// Number of ops.
    pub count: usize,
    /// Host time, milliseconds.
    pub host_ms: f64,
    /// Time of the device activities that they launched, milliseconds.
    pub device_ms: f64,
    /// Their part of the critical path, milliseconds.
    pub critical_ms: f64,
    /// Delay that any part of them can have without a longer step, milliseconds; `None` where unknown.
    pub slack_ms: Option<f64>,
}

/// A stretch of the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// `host`, `device`, `launch` or `return`.
    pub place: &'static str,
    /// The op, kernel or call.
    pub what: String,
    /// The phase of the step.
    pub phase: &'static str,
    /// Length, milliseconds.
    pub ms: f64,
}

impl Part {
    pub(super) fn new(name: &str, cost: &PhaseCost) -> Part {
        Part { name: name.into(), host_ms: ms(cost.host), device_ms: ms(cost.device) }
    }
}

pub(super) fn ops(graph: &StepGraph, simulated: &Prediction) -> Vec<Op> {
    let slack = slack::by_op(graph, &simulated.slack);
    let op = |cost: &OpCost| Op {
        name: cost.name.clone(),
        count: cost.count,
        host_ms: ms(cost.host),
        device_ms: ms(cost.device),
        critical_ms: ms(cost.critical),
        slack_ms: slack.get(cost.name.as_str()).copied().map(ms),
    };
    simulated.ops.iter().map(op).collect()
}

pub(super) fn modules(step: &Step, simulated: &Prediction) -> Vec<ModuleTime> {
    let modules = step.modules();
    let costs = breakdown::by_module(&step.graph, &simulated.timeline, &simulated.path, &modules);
    let row = |(module, cost): (&Module, &breakdown::ModuleCost)| ModuleTime {
        name: module.path.clone(),
        class: module.class.clone(),
        host_ms: ms(cost.host),
        forward_ms: ms(cost.forward),
        backward_ms: ms(cost.backward),
        critical_ms: ms(cost.critical),
    };
    let known = modules.list.iter().zip(&costs).zip(modules.ran());
    known.filter(|(_, ran)| *ran).map(|(module, _)| row(module)).collect()
}

/// Merges neighbouring stretches with the same text, in order.
pub(in super::super) fn pieces(graph: &StepGraph, path: &[Stretch]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut open: Option<TextRun<'_>> = None;
    for stretch in path {
        let (place, what) = (stretch_names::kind(stretch.place), stretch_names::what(graph, stretch.place));
        let phase = stretch_names::phase(graph, stretch.place).name();
        let time = stretch.to - stretch.from;
        match &mut open {
            Some(last) if (last.place, last.what, last.phase) == (place, what, phase) => last.time += time,
            _ => pieces.extend(open.replace(TextRun { place, what, phase, time }).map(Piece::from)),
        }
    }
    pieces.extend(open.map(Piece::from));
    pieces
}

/// Neighbours with the same text.
struct TextRun<'g> {
    place: &'static str,
    what: &'g str,
    phase: &'static str,
    time: Nanos,
}

impl From<TextRun<'_>> for Piece {
    fn from(TextRun { place, what, phase, time }: TextRun<'_>) -> Piece {
        Piece { place, what: what.into(), phase, ms: ms(time) }
    }
}
