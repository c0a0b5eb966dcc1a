//! Recordings of descriptions, compared with PyTorch's recordings of the described models.

use std::path::{Path, PathBuf};

use steptime_eager::Model;
use steptime_trace::{ExecutionTrace, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// An op: its thread, depth, name, inputs and outputs.
type Line = (u64, usize, String, String);

/// The nodes of a step in order.
fn lines(trace: &ExecutionTrace) -> Vec<Line> {
    let mut depths = std::collections::HashMap::new();
    let mut lines = Vec::new();
    for row in 0..trace.nodes.len() {
        let node = trace.nodes.row(row);
        let depth = depths.get(&node.parent).map_or(0, |depth| depth + 1);
        depths.insert(node.id, depth);
        let arguments = |values: &[Value]| {
            values.iter().map(|&value| tensors(trace, value)).collect::<Vec<_>>().join(" ")
        };
        let of = format!("{} -> {}", arguments(trace.inputs(row)), arguments(trace.outputs(row)));
        lines.push((node.tid, depth, trace.name(node.name).to_owned(), of));
    }
    lines
}

/// The tensors of an argument: type, shape, strides, offset, device.
fn tensors(trace: &ExecutionTrace, value: Value) -> String {
    let one = |tensor: &steptime_trace::Tensor| {
        let strides = trace.strides(tensor).unwrap_or_default();
        let (dtype, device) = (trace.name(tensor.dtype), trace.name(tensor.device));
        format!("{dtype}{:?}{strides:?}+{}{device}", trace.shape(tensor), tensor.offset)
    };
    trace.tensors(value).into_iter().map(one).collect::<Vec<_>>().join(",")
}

/// Checks that a model runs the ops of a recording, each on equal tensors.
fn compare(model: &Model, recording: &Path) {
    let recorded =
        steptime_trace::read_execution_trace_file(&recording.join("et.json.gz")).expect("a recording");
    let (ours, theirs) = (lines(&model.record()), lines(&recorded));
    let differs = ours.iter().zip(&theirs).position(|(own, other)| own != other);
    if let Some(at) = differs {
        panic!("{}: node {at}\n ours    {:?}\n theirs  {:?}", recording.display(), ours[at], theirs[at]);
    }
    assert_eq!(ours.len(), theirs.len(), "{}", recording.display());
}

fn described(name: &str) -> String {
    std::fs::read_to_string(root().join(format!("examples/models/{name}.toml"))).expect("an example")
}

#[test]
fn the_default_dlrm_runs_the_ops_that_were_recorded() {
    let model = Model::parse(&described("dlrm_default")).expect("a model");
    compare(&model, &root().join("examples/dlrm_default_2048"));
}

#[test]
fn the_three_dlrms_run_the_ops_that_were_recorded_at_four_batch_sizes() {
    let Some(shared) = steptime_skips::shared(env!("CARGO_MANIFEST_DIR"), "traces/h200") else { return };
    for name in ["dlrm_default", "dlrm_mlperf", "dlrm_ddp"] {
        let text = described(name);
        let batch = text.lines().find(|line| line.starts_with("batch = ")).expect("a batch");
        for size in [512, 1024, 2048, 4096] {
            let model = Model::parse(&text.replace(batch, &format!("batch = {size}"))).expect("a model");
            compare(&model, &shared.join(format!("{name}_{size}")));
        }
    }
}
