//! Checks against recordings, if they are available.

use super::invariants::{check_laws, check_order};
use super::{ExecutionGraph, join, join_step};
use crate::{Options, StepGraph};
use std::path::PathBuf;
use steptime_trace::{Recording, open};

fn traces() -> Option<PathBuf> {
    steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces")
}

fn check_graph(recording: &Recording) {
    let Some(trace) = &recording.execution else { return };
    let started = std::time::Instant::now();
    let graph = ExecutionGraph::new(trace);
    println!("{}: {} ({:?})", recording.name, graph.summary(), started.elapsed());
    assert_eq!(graph.summary().repairs, 0, "{}", recording.name);
    check_laws(&graph);
    check_order(&graph);
}

fn check_join(recording: &Recording) -> usize {
    let Some(trace) = &recording.execution else { return 0 };
    let Some(kineto) = recording.shaped.as_ref().or(recording.timing.as_ref()) else { return 0 };
    let started = std::time::Instant::now();
    let joined = join(trace, kineto);
    println!(
        "{} rank {:?}: {} by id + {} by order of {} ({:?})",
        recording.name,
        recording.rank,
        joined.by_rf_id,
        joined.by_order,
        joined.joinable,
        started.elapsed()
    );
    for &node in &joined.unmatched {
        println!("  not found: {}", trace.name(trace.nodes.name[node.index()]));
    }
    assert_eq!((joined.joined(), joined.ambiguous), (joined.joinable, 0), "{}", recording.name);
    for (row, op) in joined.node_to_op.iter().enumerate() {
        let Some(op) = op else { continue };
        assert_eq!(kineto.name(kineto.ops.name[op.index()]), trace.name(trace.nodes.name[row]));
    }
    joined.joined()
}

/// Without ids, the order of names finds the same counterparts.
fn check_order_without_ids(recording: Recording) {
    let (Some(trace), Some(mut kineto)) = (recording.execution, recording.shaped) else { return };
    let by_id = join(&trace, &kineto);
    kineto.ops.record_function_id.fill(0);
    let by_order = join(&trace, &kineto);
    assert_eq!((by_order.by_rf_id, by_order.ambiguous), (0, 0), "{}", recording.name);
    assert_eq!(by_order.node_to_op, by_id.node_to_op, "{}", recording.name);
}

#[test]
fn own_recordings_join_whole() {
    let Some(folder) = traces() else { return };
    for entry in std::fs::read_dir(folder.join("h200")).unwrap() {
        for recording in open(&entry.unwrap().path()).unwrap().recordings {
            check_graph(&recording);
            assert!(check_join(&recording) > 0);
            check_order_without_ids(recording);
        }
    }
}

#[test]
fn eight_ranks_join_whole() {
    let Some(folder) = traces() else { return };
    let recordings = open(&folder.join("public/param_dlrm_8xV100")).unwrap().recordings;
    assert_eq!(recordings.len(), 8);
    for recording in &recordings {
        check_graph(recording);
        assert_eq!(check_join(recording), 684 + 988);
    }
}

#[test]
fn published_execution_traces_give_graphs() {
    let Some(folder) = traces() else { return };
    for entry in std::fs::read_dir(folder.join("public/param_et")).unwrap() {
        open(&entry.unwrap().path()).unwrap().recordings.iter().for_each(check_graph);
    }
}

#[test]
fn one_step_is_found_among_forty() {
    let Some(folder) = traces() else { return };
    let read = |name: &str| open(&folder.join("public/param_et").join(name)).unwrap().recordings.remove(0);
    let et = read("linear_et_2080Ti.json.gz").execution.unwrap();
    let kineto = read("linear_kineto_2080Ti.json.gz").timing.unwrap();
    let joined = join(&et, &kineto);
    println!("{} + {} of {}", joined.by_rf_id, joined.by_order, joined.joinable);
    assert_eq!((joined.by_order, joined.joinable, joined.ambiguous), (928, 928, 0));
    let sequences = |row: usize| {
        Some((
            et.nodes.seq_id[row],
            kineto.ops.sequence[joined.node_to_op[super::NodeId::from(row)]?.index()],
        ))
    };
    let numbered = (0..et.nodes.len()).filter_map(sequences).filter(|&(noted, _)| noted >= 0);
    assert!(numbered.clone().count() > 20);
    assert!(numbered.into_iter().all(|(noted, recorded)| noted == recorded));
}

#[test]
fn every_op_of_a_step_has_its_node() {
    let Some(folder) = traces() else { return };
    let mut folders: Vec<_> =
        std::fs::read_dir(folder.join("h200")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().step_by(4) {
        let input = open(folder).unwrap();
        let recording = &input.recordings[0];
        let graph = ExecutionGraph::new(recording.execution.as_ref().unwrap());
        let step = StepGraph::build(recording.timing.as_ref().unwrap(), &Options::default()).unwrap();
        let joined = join_step(&graph, &step);
        assert_eq!(joined.missing, 0, "{}", recording.name);
        for (op, node) in joined.op_to_node.iter_enumerated() {
            let Some(node) = node else { continue };
            assert_eq!(step.op_name(op), graph.node_name(*node));
        }
    }
}
