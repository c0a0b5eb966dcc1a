//! Breakdown of a step's time by op, by phase, by the user's annotations, by module of the model, by kernel.

mod modules;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use steptime_graph::{ActivityId, MarkId, Op, OpId, Phase, Role, StepGraph, TiSlice, TiVec, union};
use steptime_trace::Nanos;

use crate::critical::{Stretch, op_of};
use crate::timeline::Timeline;

pub use modules::{ModuleCost, by_module};

/// Time of the top-level ops of one name in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpCost {
    pub name: String,
    /// Number of these ops.
    pub count: usize,
    /// Host time, from their beginnings to their ends.
    pub host: Nanos,
    /// Time of the device activities that they launched.
    pub device: Nanos,
    /// Their part of the critical path.
    pub critical: Nanos,
}

/// Time of a phase or an annotation in a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseCost {
    pub host: Nanos,
    /// Device active time of the activities that it launched.
    pub device: Nanos,
}

/// Time of the kernels of one name in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCost {
    pub name: String,
    /// Number of these kernels.
    pub count: usize,
    /// Sum of their durations.
    pub device: Nanos,
}

/// Returns top-level ops by name, the most expensive first: by their part of the critical path, then by device time.
pub fn by_op(graph: &StepGraph, timeline: &Timeline, path: &[Stretch]) -> Vec<OpCost> {
    let mut costs: FxHashMap<&str, OpCost> = FxHashMap::default();
    let mut entry = |op: OpId, add: &mut dyn FnMut(&mut OpCost)| {
        let name = graph.op_name(op);
        add(costs.entry(name).or_insert_with(|| OpCost {
            name: name.into(),
            count: 0,
            host: Nanos::ZERO,
            device: Nanos::ZERO,
            critical: Nanos::ZERO,
        }));
    };
    for op in graph.ops.keys() {
        if graph.is_top_level(op) {
            let row = &graph.ops[op];
            let host = timeline.marks[row.end] - timeline.marks[row.begin];
            entry(op, &mut |cost| {
                cost.count += 1;
                cost.host += host;
            });
        }
    }
    for (index, activity) in graph.activities.iter_enumerated() {
        if let Some(op) = graph.calls[activity.call].op {
            let time = timeline.ends[index] - timeline.starts[index];
            entry(graph.top_level(op), &mut |cost| cost.device += time);
        }
    }
    for stretch in path {
        if let Some(op) = op_of(graph, stretch.place) {
            let top = graph.top_level(op);
            if !graph.ops[top].annotation {
                entry(top, &mut |cost| cost.critical += stretch.to - stretch.from);
            }
        }
    }
    let mut rows: Vec<OpCost> = costs.into_values().filter(|cost| cost.count > 0).collect();
    rows.sort_by(|a, b| {
        (b.critical, b.device, b.host, &a.name).cmp(&(a.critical, a.device, a.host, &b.name))
    });
    rows
}

/// Returns kernels, copies and memsets by name, the most expensive first.
pub fn by_kernel(graph: &StepGraph, durations: &TiSlice<ActivityId, Nanos>) -> Vec<KernelCost> {
    let mut costs: FxHashMap<&str, (usize, Nanos)> = FxHashMap::default();
    for (activity, &duration) in graph.activities.iter().zip(durations) {
        let cost = costs.entry(graph.names.get(activity.name)).or_default();
        cost.0 += 1;
        cost.1 += duration;
    }
    let mut rows: Vec<KernelCost> = costs
        .into_iter()
        .map(|(name, (count, device))| KernelCost { name: name.into(), count, device })
        .collect();
    rows.sort_by(|a, b| (b.device, &a.name).cmp(&(a.device, &b.name)));
    rows
}

/// Returns host and device time by phase, in the order of a step.
///
/// Host time is that of the main and the backward thread, gaps between ops included: a gap belongs to the phase
/// of the op after it. Device time is the union of a phase's activities.
pub fn by_phase(graph: &StepGraph, timeline: &Timeline) -> Vec<(Phase, PhaseCost)> {
    let mut costs: BTreeMap<Phase, PhaseCost> =
        Phase::ALL.iter().map(|&p| (p, PhaseCost::default())).collect();
    let mut order: Vec<MarkId> =
        graph.marks.keys().filter(|&m| graph.threads[graph.marks[m].thread].role != Role::Other).collect();
    order.sort_by_key(|&m| (timeline.marks[m], m));
    for pair in order.windows(2) {
        let phase = graph.phase_of_mark(pair[1]);
        if let Some(cost) = costs.get_mut(&phase) {
            cost.host += timeline.marks[pair[1]] - timeline.marks[pair[0]];
        }
    }
    for (phase, cost) in &mut costs {
        cost.device = device_union(graph, timeline, |op| op.is_some_and(|op| graph.ops[op].phase == *phase));
    }
    if let Some(other) = costs.get_mut(&Phase::Other) {
        other.device += device_union(graph, timeline, |op| op.is_none());
    }
    costs.into_iter().filter(|(_, cost)| *cost != PhaseCost::default()).collect()
}

/// Annotations nested deeper than this are not listed.
const DEEPEST: u32 = 64;

/// Returns the user's annotations with their host time and the device time of the launches inside, in order.
pub fn by_annotation(graph: &StepGraph, timeline: &Timeline) -> Vec<(String, PhaseCost)> {
    let mut rows: Vec<(String, PhaseCost)> = Vec::new();
    let mut place: FxHashMap<&str, usize> = FxHashMap::default();
    let mut depths: TiVec<OpId, u32> = TiVec::with_capacity(graph.ops.len());
    for op in &graph.ops {
        let around = op.parent.map_or(0, |parent| depths[parent]);
        depths.push(around + u32::from(op.annotation));
        if !op.annotation || around >= DEEPEST {
            continue;
        }
        let name = graph.names.get(op.name);
        let host = timeline.marks[op.end] - timeline.marks[op.begin];
        let at = *place.entry(name).or_insert_with(|| {
            rows.push((name.into(), PhaseCost::default()));
            rows.len() - 1
        });
        rows[at].1.host += host;
        rows[at].1.device += device_within(graph, timeline, op);
    }
    rows
}

/// Returns the device time of the launches inside an op: its calls, and their activities, have consecutive ids.
fn device_within(graph: &StepGraph, timeline: &Timeline, op: &Op) -> Nanos {
    let from = graph.calls.partition_point(|call| call.begin < op.begin);
    let to = graph.calls.partition_point(|call| call.begin < op.end);
    let first = graph.activities.partition_point(|activity| activity.call < from);
    let end = graph.activities.partition_point(|activity| activity.call < to);
    let mut spans: Vec<(Nanos, Nanos)> =
        first.until(end).map(|index| (timeline.starts[index], timeline.ends[index])).collect();
    // The spans of each stream are in order, which makes the sort fast.
    spans.sort();
    union(&spans)
}

fn device_union(graph: &StepGraph, timeline: &Timeline, wanted: impl Fn(Option<OpId>) -> bool) -> Nanos {
    let mut spans: Vec<(Nanos, Nanos)> = graph
        .activities
        .iter_enumerated()
        .filter(|(_, activity)| wanted(graph.calls[activity.call].op))
        .map(|(index, _)| (timeline.starts[index], timeline.ends[index]))
        .collect();
    // The spans of each stream are in order, which makes the sort fast.
    spans.sort();
    union(&spans)
}
