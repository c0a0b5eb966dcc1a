//! Doubt: one rank of a job is predicted alone.

use std::collections::BTreeMap;

use steptime_cost::network::Topology;
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::Doubt;
use crate::pricing::exchange_call;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// The doubt, where the rank's collectives include waiting for missing ranks.
pub(crate) fn doubt(graph: &StepGraph, kernels: &Kernels<'_>, step: Nanos) -> Option<Doubt> {
    let width = &uncertainty().doubts.single_rank;
    let size = graph.collectives.iter().filter_map(|collective| collective.group.size).max();
    let of = size.map_or_else(|| "several".to_owned(), |size| size.to_string());
    let count = graph.collectives.iter().filter(|collective| collective.group.size != Some(1)).count();
    if !graph.is_measured() {
        return (count > 0).then(|| Doubt {
            kind: "ranks",
            text: format!(
                "one rank of {of}: waiting for other ranks in its {count} collectives is not counted{}; give all ranks",
                uncounted(graph, kernels),
            ),
            below: width.other_side,
            above: width.waits_unknown,
            no_estimate: false,
        });
    }
    let met = graph.activities.iter_enumerated().filter(|(_, row)| {
        let size = row.collective.map(|at| graph.collectives[at].group.size);
        size.is_some_and(|size| size != Some(1))
    });
    let time: Nanos = met.filter_map(|(at, _)| graph.samples.median_duration(at)).sum();
    (time.0 as f64 > width.threshold * step.0 as f64).then(|| Doubt {
        kind: "ranks",
        text: format!(
            "one rank of {of}: its collectives take {:.3} ms as recorded; their waiting for other ranks is assumed to shrink without the \
             profiler as much as the rank's own step; give the folder of all ranks",
            time.as_millis(),
        ),
        below: width.below,
        above: width.other_side,
        no_estimate: false,
    })
}

/// Lists the collectives without a time, by name, and the reason, as the end of a sentence; empty where all have one.
fn uncounted(graph: &StepGraph, kernels: &Kernels<'_>) -> String {
    if !joined(kernels) {
        return ", nor are the collectives: the links of GPUs of this name are not known".to_owned();
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for collective in graph.collectives.iter().filter(|own| exchange_call(own).is_none()) {
        *kinds.entry(collective.kind.name()).or_default() += 1;
    }
    if kinds.is_empty() {
        return String::new();
    }
    let listed: Vec<String> = kinds.iter().map(|(name, count)| format!("{count} {name}")).collect();
    format!(
        ", and {} are not counted at all: the trace lacks their number of ranks or bytes",
        listed.join(", ")
    )
}

/// Whether collectives among the priced GPUs can be priced.
fn joined(kernels: &Kernels<'_>) -> bool {
    match kernels {
        Kernels::Device { profile, .. } => Topology::find(&profile.spec.name).is_ok(),
        Kernels::Measured => true,
    }
}
