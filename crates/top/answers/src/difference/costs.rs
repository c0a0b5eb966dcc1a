//! Times of each top-level op and annotation of a step.

use rustc_hash::FxHashMap;
use steptime_graph::{OpId, StepGraph};
use steptime_sim::critical::op_of;
use steptime_trace::Nanos;

use steptime_predict::Prediction;

/// A top-level op, or an annotation outside of ops.
#[derive(Debug, Clone, Default)]
pub(super) struct Cost {
    pub name: String,
    pub annotation: bool,
    /// Names of the annotations around it, outermost first.
    pub within: Vec<String>,
    /// Time from its begin to its end, on the host.
    pub host: Nanos,
    /// Time of the device activities that it launched.
    pub device: Nanos,
    /// Its part of the critical path.
    pub critical: Nanos,
}

/// Ops and annotations in order of their begin, thread by thread. An annotation's times include everything inside it.
pub(super) fn collect(graph: &StepGraph, prediction: &Prediction) -> Vec<Cost> {
    let timeline = &prediction.timeline;
    let shown: Vec<OpId> =
        graph.ops.keys().filter(|&op| graph.is_top_level(op) || is_outer_annotation(graph, op)).collect();
    let place: FxHashMap<OpId, usize> = shown.iter().enumerate().map(|(at, &op)| (op, at)).collect();
    let mut costs: Vec<Cost> = shown
        .iter()
        .map(|&op| {
            let row = &graph.ops[op];
            let mut within: Vec<String> =
                around(graph, op).skip(1).map(|op| graph.op_name(op).into()).collect();
            within.reverse();
            Cost {
                name: graph.op_name(op).into(),
                annotation: row.annotation,
                within,
                host: timeline.marks[row.end] - timeline.marks[row.begin],
                ..Cost::default()
            }
        })
        .collect();
    let mut add = |op: OpId, to: fn(&mut Cost) -> &mut Nanos, time: Nanos| {
        for op in around(graph, op) {
            if let Some(&at) = place.get(&op) {
                *to(&mut costs[at]) += time;
            }
        }
    };
    for (at, activity) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[activity.call].op {
            add(op, |cost| &mut cost.device, timeline.ends[at] - timeline.starts[at]);
        }
    }
    for stretch in &prediction.path {
        if let Some(op) = op_of(graph, stretch.place) {
            add(op, |cost| &mut cost.critical, stretch.to - stretch.from);
        }
    }
    costs
}

/// An op and the ops around it, innermost first.
fn around(graph: &StepGraph, op: OpId) -> impl Iterator<Item = OpId> {
    std::iter::successors(Some(op), |&op| graph.ops[op].parent)
}

/// Whether only annotations are around an annotation.
fn is_outer_annotation(graph: &StepGraph, op: OpId) -> bool {
    around(graph, op).all(|op| graph.ops[op].annotation)
}
