//! Two baselines to compare with: the published method, and the plain sum of kernels.

use rustc_hash::FxHashMap;
use steptime_cost::overheads::{Overhead, Overheads};
use steptime_graph::{ActivityId, OpId, StepGraph, TiSlice, TiVec};
use steptime_trace::Nanos;

/// An op in the published method: its name and the durations of its kernels, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaperOp {
    /// Name by which the op's overheads are looked up.
    pub name: String,
    /// Durations of the kernels that the op launches.
    pub kernels: Vec<Nanos>,
}

/// T4 of the published method: one constant for all runtime calls.
const T4: Nanos = Nanos(10_000);
/// Gap between kernels in the published method.
const KERNEL_GAP: Nanos = Nanos(1_000);

/// Predicts the step time by the published Algorithm 1: one host clock, one device clock, top-level ops in order.
///
/// ```text
/// for each op:                     cpu += T1
///   without kernels:               cpu += T5(op)
///   with kernels:                  cpu += T2(op)
///     for each kernel k:           gpu = max(gpu + 1, cpu + T4/2) + Tk;  cpu += T4
///       if another follows:        cpu += T5(op)
///                                  cpu += T3(op)
/// step = max(cpu, gpu)
/// ```
/// Times in microseconds, `T4 = 10`. Source: "Building a Performance Model for Deep Learning Recommendation
/// Model Training on GPUs", Algorithm 1.
pub fn algorithm_1(ops: &[PaperOp], overheads: &Overheads) -> Nanos {
    let mut known: FxHashMap<(Overhead, &str), Nanos> = FxHashMap::default();
    let mut whole: FxHashMap<Overhead, Nanos> = FxHashMap::default();
    let mut of = |kind, name| {
        *known.entry((kind, name)).or_insert_with(|| {
            overheads.published_mean_of(kind, name).unwrap_or_else(|| {
                *whole.entry(kind).or_insert_with(|| overheads.published_mean_of_kind(kind))
            })
        })
    };
    let t1 = of(Overhead::T1, "between ops");
    let (mut cpu, mut gpu) = (Nanos::ZERO, Nanos::ZERO);
    for op in ops {
        cpu += t1;
        if op.kernels.is_empty() {
            cpu += of(Overhead::T5, &op.name);
            continue;
        }
        let t5 = of(Overhead::T5, &op.name);
        cpu += of(Overhead::T2, &op.name);
        for (k, &kernel) in op.kernels.iter().enumerate() {
            gpu = (gpu + KERNEL_GAP).max(cpu + T4 / 2) + kernel;
            cpu += T4;
            if k + 1 < op.kernels.len() {
                cpu += t5;
            }
        }
        cpu += of(Overhead::T3, &op.name);
    }
    cpu.max(gpu)
}

/// Predicts the step time of a graph by the published method: its top-level ops in order of time, with the given kernel durations.
pub fn paper(graph: &StepGraph, durations: &TiSlice<ActivityId, Nanos>, overheads: &Overheads) -> Nanos {
    algorithm_1(&paper_ops(graph, durations), overheads)
}

fn paper_ops(graph: &StepGraph, durations: &TiSlice<ActivityId, Nanos>) -> Vec<PaperOp> {
    let mut kernels: TiVec<OpId, Vec<Nanos>> = vec![Vec::new(); graph.ops.len()].into();
    for (activity, &duration) in graph.activities.iter().zip(durations) {
        if let Some(op) = graph.calls[activity.call].op {
            kernels[graph.top_level(op)].push(duration);
        }
    }
    let mut tops: Vec<OpId> = graph.ops.keys().filter(|&op| graph.is_top_level(op)).collect();
    let began = |op: OpId| {
        graph
            .samples
            .steps()
            .find_map(|step| Some(graph.samples.mark(step, graph.ops[op].begin)? - graph.samples.start(step)))
    };
    tops.sort_by_key(|&op| began(op));
    tops.into_iter()
        .map(|op| PaperOp { name: graph.op_name(op).into(), kernels: std::mem::take(&mut kernels[op]) })
        .collect()
}

/// Returns the plain sum of kernels, copies and memsets.
pub fn kernel_sum(durations: &TiSlice<ActivityId, Nanos>) -> Nanos {
    durations.iter().copied().sum()
}
