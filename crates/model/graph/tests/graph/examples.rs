//! The example recordings.

use std::collections::HashSet;
use std::path::Path;

use steptime_graph::{Options, Role, StepGraph, StepId, StepSource};
use steptime_trace::Trace;

fn example(name: &str) -> (Trace, StepGraph) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name).join("kineto.json.gz");
    let trace = steptime_trace::read_kineto_file(&path).expect("an example");
    let graph = StepGraph::build(&trace, &Options::default()).expect("a graph");
    (trace, graph)
}

/// Counts the activities without a call that ran before any activity with a call: the profiler was not yet on
/// when they were launched.
fn launched_before_the_trace(trace: &Trace) -> usize {
    let calls: HashSet<u64> = trace.calls.correlation.iter().copied().collect();
    let (linked, lone): (Vec<_>, Vec<_>) =
        trace.activities.rows().partition(|activity| calls.contains(&activity.correlation));
    let first = linked.iter().map(|activity| activity.start).min().expect("kernels");
    assert!(lone.iter().all(|activity| activity.start < first));
    lone.len()
}

fn check(name: &str, steps: usize) {
    let (trace, graph) = example(name);
    let coverage = graph.coverage;
    assert_eq!(graph.step_source, StepSource::Marked);
    assert_eq!((coverage.steps, coverage.steps_alike), (steps, steps));
    assert_eq!(coverage.marks_matched_permille, 1000);
    assert_eq!(coverage.launches_in_op, coverage.launches);
    assert_eq!(coverage.activities_in_steps, coverage.activities_linked);
    assert_eq!(coverage.activities - coverage.activities_linked, launched_before_the_trace(&trace));
    assert_eq!(coverage.hand_offs, 2);
    let roles: Vec<Role> = graph.threads.iter().map(|t| t.role).collect();
    assert_eq!(roles, [Role::Main, Role::Autograd]);
    assert_eq!(graph.complete_step(), Some(StepId(0)));
}

#[test]
fn dlrm_default() {
    check("dlrm_default_2048", 30);
}

#[test]
fn dlrm_default_fused() {
    check("dlrm_default_fused_2048", 30);
}

#[test]
fn dlrm_ddp() {
    check("dlrm_ddp_2048", 30);
}

#[test]
fn dlrm_mlperf() {
    check("dlrm_mlperf_2048", 30);
}

#[test]
fn resnet50() {
    check("resnet50_32", 10);
}
