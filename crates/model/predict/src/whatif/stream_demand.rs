//! Demand of a changed step's kernels on the GPU, where a rule put them on several streams.

use rustc_hash::FxHashSet;
use steptime_aten::kernel::{Kernel, KernelCall};
use steptime_cost::{Demand, Demands, Multiprocessor};
use steptime_graph::{ActivityId, TiVec};
use steptime_step::Origin;
use steptime_trace::{ActivityKind, Nanos};

use super::{Base, ModifiedStep};
use crate::pricing::{channels, usual, whole};
use crate::uncertainty::uncertainty;

/// Demands of a changed step's kernels, and the half-width from sharing, relative to device time; `None` where no
/// rule made streams, so that each kernel takes its own time.
pub(super) fn demands(
    base: &Base,
    edited: &ModifiedStep,
    durations: &TiVec<ActivityId, Nanos>,
) -> Option<(Demands, f64)> {
    if edited.step.nodes.is_none() && edited.step.ops.iter().all(|op| op.stream == 0) {
        return None;
    }
    let nodes = edited.step.nodes.is_some();
    let graph = &edited.flat().graph;
    let streams = &uncertainty().streams;
    let is_kernel = |at: ActivityId| graph.activities[at].kind == ActivityKind::Kernel;
    let Some(spec) = &base.spec else {
        // On an unknown GPU each kernel occupies all of it.
        let all = Demand { blocks: 1.0, warps: 1.0, block: [1.0; 4], memory: 0.0, busy: 1.0 };
        let of = graph.activities.keys().map(|at| is_kernel(at).then_some(all)).collect();
        return Some((Demands { multiprocessors: 1, nodes, of }, streams.unknown_grids));
    };
    let has = Multiprocessor::from_capability(spec.compute_capability);
    let mut of: TiVec<ActivityId, Option<Demand>> = vec![None; graph.activities.len()].into();
    let (mut known, mut estimated) = (0.0, 0.0);
    // An op that a library spreads over streams of its own was measured in that way.
    let spread = |activities: &[ActivityId]| {
        let mut streams = activities.iter().map(|&at| graph.activities[at].stream);
        streams.next().is_some_and(|first| streams.any(|stream| stream != first))
    };
    let mut together: FxHashSet<ActivityId> = FxHashSet::default();
    for launch in &edited.launches {
        if spread(&launch.activities) {
            together.extend(&launch.activities);
            continue;
        }
        let total: f64 = launch.activities.iter().map(|&at| durations[at].as_micros()).sum();
        let memory = spec.dram_us(launch.call.footprint() as f64) / total.max(f64::MIN_POSITIVE);
        let as_recorded = launch
            .op
            .is_some_and(|op| matches!(edited.step.ops[edited.flat().ops[op]].origin, Origin::Recorded(_)));
        for &at in launch.activities.iter().filter(|&&at| is_kernel(at)) {
            let shape = graph.activities[at].launch.filter(|_| as_recorded);
            *if shape.is_some() { &mut known } else { &mut estimated } += durations[at].as_micros();
            let shape = shape.unwrap_or_else(|| usual(&launch.call, spec));
            let demand = Demand::from_launch(&shape, &has, memory);
            of[at] = Some(if as_recorded {
                demand
            } else {
                Demand { busy: busy(&launch.call, memory), ..demand }
            });
        }
    }
    for (at, row) in graph.activities.iter_enumerated() {
        if let Some(own) = row.collective.filter(|_| nodes) {
            let shape = row.launch.unwrap_or_else(|| channels(graph.collectives[own].kind, spec));
            of[at] = Some(Demand::from_launch(&shape, &has, 0.0));
        }
    }
    // Kernels without a known op occupy the whole GPU.
    for at in graph.activities.keys().filter(|at| is_kernel(*at) && !together.contains(at)) {
        of[at].get_or_insert_with(|| {
            let shape = graph.activities[at].launch.unwrap_or(whole(spec));
            Demand::from_launch(&shape, &has, 1.0)
        });
    }
    let share = estimated / f64::max(known + estimated, f64::MIN_POSITIVE);
    // A caller knows both bounds of nodes: the longest path, and the sequence.
    let share = if nodes { 0.0 } else { share };
    let half_width = streams.known_grids + (streams.unknown_grids - streams.known_grids) * share;
    Some((Demands { multiprocessors: spec.multiprocessors, nodes, of }, half_width))
}

/// Least share of issue slots of a kernel that runs.
const LEAST_BUSY: f64 = 0.1;

/// Share of issue slots that a kernel takes: products keep their multiprocessors busy, others as long as they move data. The rest of their time is
/// latency.
fn busy(call: &KernelCall, memory: f64) -> f64 {
    match &call.kernel {
        Kernel::Gemm(_) | Kernel::Conv(_) | Kernel::Attention(_) | Kernel::Rnn(_) => 1.0,
        _ => memory.clamp(LEAST_BUSY, 1.0),
    }
}
