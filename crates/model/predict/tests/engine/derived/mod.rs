//! A step graph from the execution trace alone predicts the same time as the recorded one: the same kernel times and
//! the default host profile are given to both.

mod moved;

use std::path::{Path, PathBuf};

use steptime_aten::OpSet;
use steptime_aten::derive::{self, DerivedStep};
use steptime_cost::Process;
use steptime_cost::{HostCosts, PricedGraph};
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::{ActivityId, OpId, Options, StepGraph, TiVec};
use steptime_predict::default_host;
use steptime_sim::Timeline;
use steptime_trace::{Nanos, Recording};

/// Largest accepted difference of the two predictions.
const APART: f64 = 0.02;

fn recordings() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folders = [root.join("examples"), root.join("../shared/traces/h200")];
    let mut paths: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
        .filter(|path| path.is_dir() && !path.ends_with("models") && !path.ends_with("jobs"))
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| steptime_trace::open(path).unwrap().recordings).collect()
}

/// Recorded time of each op's launches, distributed over the activities derived for it. Ops are the same in
/// both, in the same order.
fn durations(recorded: &StepGraph, derived: &DerivedStep) -> TiVec<ActivityId, Nanos> {
    let mut of_op: TiVec<OpId, Nanos> = vec![Nanos::ZERO; recorded.ops.len()].into();
    for (at, activity) in recorded.activities.iter_enumerated() {
        if let Some(op) = recorded.calls[activity.call].op {
            of_op[op] += recorded.samples.median_duration(at).unwrap_or(Nanos::ZERO);
        }
    }
    let mut durations: TiVec<ActivityId, Nanos> = vec![Nanos::ZERO; derived.graph.activities.len()].into();
    for kernel in &derived.kernels {
        let time = std::mem::take(&mut of_op[kernel.op]);
        for &activity in &kernel.activities {
            durations[activity] = time / kernel.activities.len() as i64;
        }
    }
    assert!(of_op.iter().all(|&left| left == Nanos::ZERO), "an op launches what was not derived");
    durations
}

#[test]
fn the_step_takes_as_long_as_that_of_the_recorded_graph() {
    let profile = default_host().unwrap();
    println!("{:26} {:>9} {:>9} {:>9} {:>7}", "recording", "measured", "recorded", "derived", "apart");
    for recording in recordings() {
        let recorded = StepGraph::build(recording.timing.as_ref().unwrap(), &Options::default()).unwrap();
        let execution = ExecutionGraph::new(recording.execution.as_ref().unwrap());
        let derived = derive::step_graph(&execution, &OpSet::standard()).unwrap();
        assert_eq!(recorded.ops.len(), derived.graph.ops.len(), "{}", recording.name);
        let host = |graph| HostCosts::from_profile(graph, profile, Process::Profiled);
        let from_recording = Timeline::simulate(&PricedGraph::measured(&recorded, host(&recorded))).period;
        let durations = durations(&recorded, &derived);
        let graph = &derived.graph;
        let alone =
            Timeline::simulate(&PricedGraph { graph, host: host(graph), durations, demands: None }).period;
        let apart = alone.as_millis() / from_recording.as_millis() - 1.0;
        println!(
            "{:26} {:9.3} {:9.3} {:9.3} {:+6.2}%",
            recording.name,
            recording.meta.as_ref().and_then(|meta| meta.step_ms).unwrap_or(f64::NAN),
            from_recording.as_millis(),
            alone.as_millis(),
            100.0 * apart
        );
        assert!(apart.abs() < APART, "{}: {from_recording} recorded, {alone} derived", recording.name);
    }
}
