//! The graph of a step: ops within ops, and the tensors from one to the next.

use serde::Serialize;
use steptime_aten::Arg;
use steptime_graph::{Modules, OpId, StepGraph, TiVec};
use steptime_predict::Prediction;
use steptime_rewrite::sized;
use steptime_sim::critical::op_of;
use steptime_step::{self, Origin, TensorId, Uses};
use steptime_trace::Nanos;

use crate::columns::{Column, Columns};
use crate::timeline::phase;

/// Ops in the order in which they begin, thread by thread. Times are in ticks of `tick_ns` nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Graph {
    /// Duration of a tick, nanoseconds.
    pub tick_ns: u32,
    /// Names, texts.
    pub name: Column,
    /// One more than the op around each; 0 if there is none.
    pub parent: Column,
    /// Threads.
    pub thread: Column,
    /// Phases of the step.
    pub phase: Column,
    /// 1 for an annotation.
    pub annotation: Column,
    /// 0 as recorded, 1 changed by a rule, 2 inserted by one.
    pub change: Column,
    /// Time on the host, from begin to end.
    pub host: Column,
    /// Device time of their own launches.
    pub device: Column,
    /// Own time on the critical path.
    pub critical: Column,
    /// One more than the text of their inputs; 0 if not known.
    pub takes: Column,
    /// The same for their outputs.
    pub gives: Column,
    /// One more than the text of the table or layer, `tables[3]`, for the first op that uses it; 0 for others.
    pub part: Column,
    /// One more than the module that ran it, or whose backward pass it belongs to; 0 for others.
    pub module: Column,
    pub edges: Edges,
}

/// Tensors, from the innermost op that produces each to the innermost ops that use it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Edges {
    /// Op that produces the tensor.
    pub from: Column,
    /// Op that uses it.
    pub to: Column,
    /// Type and shape, a text.
    pub tensor: Column,
}

/// The ops and tensors of a graph with known arguments of ops.
pub(crate) struct DescribedGraph<'s> {
    /// Ops and tensors.
    pub step: &'s steptime_step::StepIr,
    /// Op of the step for each op of the graph.
    pub of: TiVec<OpId, Option<steptime_step::OpId>>,
}

impl<'s> DescribedGraph<'s> {
    /// Describes a step without changes by rules.
    pub(crate) fn recorded(step: &'s steptime_step::StepIr, graph: &StepGraph) -> DescribedGraph<'s> {
        let mut of: TiVec<OpId, Option<steptime_step::OpId>> = vec![None; graph.ops.len()].into();
        for op in step.running() {
            if let Some(at) = step.ops[op].origin.recorded() {
                of[at] = Some(op);
            }
        }
        DescribedGraph { step, of }
    }
}

/// Returns the graph of a predicted step.
pub(crate) fn build(
    graph: &StepGraph,
    prediction: &Prediction,
    described: Option<&DescribedGraph<'_>>,
    modules: &Modules,
    columns: &mut Columns,
) -> Graph {
    let timeline = &prediction.timeline;
    let mut device: TiVec<OpId, Nanos> = vec![Nanos::ZERO; graph.ops.len()].into();
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[activity.call].op {
            device[op] += timeline.ends[at] - timeline.starts[at];
        }
    }
    let mut critical: TiVec<OpId, Nanos> = vec![Nanos::ZERO; graph.ops.len()].into();
    for stretch in &prediction.path {
        if let Some(op) = op_of(graph, stretch.place) {
            critical[op] += stretch.to - stretch.from;
        }
    }
    let host: Vec<Nanos> =
        graph.ops.iter().map(|op| timeline.marks[op.end] - timeline.marks[op.begin]).collect();
    let longest = host.iter().chain(&device).chain(&critical).max().map_or(0, |time| time.0);
    let tick = (longest / i64::from(u32::MAX) + 1).max(1);
    let ticks = |time: &Nanos| u32::try_from(time.0.max(0) / tick).unwrap_or(u32::MAX);
    let called = |op: OpId| described.and_then(|d| Some(&d.step.ops[d.of[op]?]));
    let change = |op: OpId| match called(op).map(|row| row.origin) {
        None | Some(Origin::Recorded(_)) => 0,
        Some(Origin::Changed(..)) => 1,
        Some(Origin::Inserted(_)) => 2,
    };
    let names: Vec<u32> = graph.ops.keys().map(|op| columns.text(graph.op_name(op))).collect();
    let mut texts = |of: fn(&steptime_step::Call) -> &[Arg<TensorId>]| -> Vec<u32> {
        let text = |op: OpId| Some(arguments(described?.step, of(called(op)?.arguments()?)));
        graph.ops.keys().map(|op| text(op).map_or(0, |text| 1 + columns.text(&text))).collect()
    };
    let (takes, gives) = (texts(|call| &call.inputs), texts(|call| &call.outputs));
    let part = parts(graph, described, columns);
    Graph {
        tick_ns: u32::try_from(tick).unwrap_or(u32::MAX),
        name: columns.whole(names),
        parent: columns.growing(graph.ops.iter().map(|op| op.parent.map_or(0, |parent| parent.0 + 1))),
        thread: columns.whole(graph.ops.iter().map(|op| op.thread.0)),
        phase: columns.small(graph.ops.iter().map(|op| phase(op.phase))),
        annotation: columns.small(graph.ops.iter().map(|op| u8::from(op.annotation))),
        change: columns.small(graph.ops.keys().map(change)),
        host: columns.whole(host.iter().map(ticks)),
        device: columns.whole(device.iter().map(ticks)),
        critical: columns.whole(critical.iter().map(ticks)),
        takes: columns.whole(takes),
        gives: columns.whole(gives),
        part: columns.whole(part),
        module: columns.whole(graph.ops.keys().map(|op| module(op, described, modules))),
        edges: edges(graph, described, columns),
    }
}

/// Returns one more than the module of an op, which may be in a step changed by rules; 0 if it has none.
fn module(op: OpId, described: Option<&DescribedGraph<'_>>, modules: &Modules) -> u32 {
    let recorded = match described {
        None => Some(op),
        Some(DescribedGraph { step, of }) => of[op].and_then(|op| step.recorded(op)),
    };
    recorded.and_then(|op| *modules.of.get(op)?).map_or(0, |module| module.0 + 1)
}

/// Returns for each op one more than the text of the table or layer that it is the first to use; 0 for others.
fn parts(graph: &StepGraph, described: Option<&DescribedGraph<'_>>, columns: &mut Columns) -> Vec<u32> {
    let Some(DescribedGraph { step, of }) = described else { return vec![0; graph.ops.len()] };
    let mut texts: TiVec<steptime_step::OpId, u32> = vec![0; step.ops.len()].into();
    for (op, path) in sized(step) {
        texts[op] = 1 + columns.text(&path);
    }
    graph.ops.keys().map(|op| of[op].map_or(0, |op| texts[op])).collect()
}

fn edges(graph: &StepGraph, described: Option<&DescribedGraph<'_>>, columns: &mut Columns) -> Edges {
    let mut rows: Vec<(u32, u32, u32)> = Vec::new();
    if let Some(DescribedGraph { step, of }) = described {
        let mut shown: TiVec<steptime_step::OpId, Option<OpId>> = vec![None; step.ops.len()].into();
        for op in graph.ops.keys() {
            if let Some(at) = of[op] {
                shown[at] = Some(op);
            }
        }
        for edge in steptime_step::export::data(step, &Uses::find(step)) {
            if let (Some(from), Some(to)) = (shown[edge.from], shown[edge.to]) {
                rows.push((from.0, to.0, columns.text(&tensor(step, edge.tensor))));
            }
        }
    }
    Edges {
        from: columns.growing(rows.iter().map(|row| row.0)),
        to: columns.growing(rows.iter().map(|row| row.1)),
        tensor: columns.whole(rows.iter().map(|row| row.2)),
    }
}

/// Formats a tensor as `float32[2048, 64]`.
fn tensor(step: &steptime_step::StepIr, tensor: TensorId) -> String {
    let value = &step.tensors[tensor].value;
    let sides: Vec<String> = value.shape.iter().map(i64::to_string).collect();
    format!("{}[{}]", value.dtype.name(), sides.join(", "))
}

fn arguments(step: &steptime_step::StepIr, all: &[Arg<TensorId>]) -> String {
    let numbers =
        |list: &mut dyn Iterator<Item = String>| format!("[{}]", list.collect::<Vec<_>>().join(", "));
    let one = |arg: &Arg<TensorId>| match arg {
        Arg::None => "none".to_owned(),
        Arg::Tensor(id) => tensor(step, *id),
        Arg::Tensors(list) => numbers(&mut list.iter().map(|&id| tensor(step, id))),
        Arg::Bool(value) => value.to_string(),
        Arg::Int(value) => value.to_string(),
        Arg::Float(value) => value.to_string(),
        Arg::Ints(list) => numbers(&mut list.iter().map(i64::to_string)),
        Arg::Floats(list) => numbers(&mut list.iter().map(f64::to_string)),
        Arg::Text(text) => text.clone(),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
