//! A change of the batch gives the step recorded at that batch: op by op, shape by shape.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steptime_aten::Arg;
use steptime_predict::open;
use steptime_rewrite::{self, Audit, BatchDims, Facts, ResizeBatch};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/batches").join(name)
}

/// Number of runs of each op by the shapes of its input and output tensors.
type Calls = BTreeMap<(String, Vec<Vec<i64>>, Vec<Vec<i64>>), usize>;

fn calls(step: &steptime_step::StepIr) -> Calls {
    let mut calls = Calls::new();
    let shapes = |args: &[Arg]| -> Vec<Vec<i64>> {
        args.iter().flat_map(Arg::tensors).map(|tensor| tensor.shape.to_vec()).collect()
    };
    for op in step.running() {
        if let Some(call) = step.call(op) {
            *calls.entry((call.name.clone(), shapes(&call.inputs), shapes(&call.outputs))).or_default() += 1;
        }
    }
    calls
}

/// The step of a recording, after a change of its batch where one is given.
fn step(name: &str, batch: Option<ResizeBatch>) -> (Calls, Vec<Audit>) {
    let recorded = open(folder(name)).expect("a recording");
    let mut step = recorded.arguments.editable(&recorded.graph);
    let facts = Facts::new(&recorded.ops, recorded.batch());
    let rules: Vec<&dyn steptime_rewrite::Rule> = batch.iter().map(|rule| rule as _).collect();
    let audits = steptime_rewrite::apply(&mut step, &rules, &facts)
        .unwrap_or_else(|refused| panic!("{name}: {refused}"));
    (calls(&step), audits)
}

fn is_as_recorded(before: &str, to: u64, after: &str) -> Vec<Audit> {
    let (changed, audits) = step(before, Some(ResizeBatch::to(to)));
    let (right, _) = step(after, None);
    for (call, count) in &changed {
        assert_eq!(right.get(call), Some(count), "{before} at {to}: {call:?}");
    }
    assert_eq!(changed.len(), right.len());
    audits
}

/// Positions, width, classes and samples are 8 each.
#[test]
fn a_size_that_is_the_batch_is_not_taken_for_it() {
    is_as_recorded("encoder_8", 32, "encoder_32");
}

#[test]
fn a_larger_batch_becomes_one_of_the_size_of_others() {
    is_as_recorded("encoder_32", 8, "encoder_8");
}

/// With one sample, the batch may be any dimension of size one. Positions come first inside of attention: with one sample its input is
/// contiguous, with several it is copied, and the layer multiplies and adds its bias in two steps.
#[test]
fn one_sample_becomes_several() {
    let (changed, _) = step("one_1", Some(ResizeBatch::to(4)));
    let (right, _) = step("one_4", None);
    let more = changed.iter().filter(|(call, count)| right.get(call) < Some(count));
    let more: Vec<(&str, &[i64])> = more
        .map(|((name, _, given), _)| (name.as_str(), given.first().map_or(&[][..], Vec::as_slice)))
        .collect();
    let layer: [(&str, &[i64]); 9] = [
        ("aten::addmm", &[24, 24]),
        // In the gradient of attention, copies are ops of their own here.
        ("aten::clone", &[]),
        ("aten::clone", &[4, 2, 6, 4]),
        ("aten::contiguous", &[4, 6, 2, 4]),
        ("aten::contiguous", &[4, 6, 8]),
        ("aten::sum", &[1, 24]),
        ("aten::view", &[24]),
        ("aten::view", &[24, 8]),
        ("aten::view", &[6, 4, 24]),
    ];
    assert!(more.iter().all(|call| layer.contains(call)), "{more:?}");
}

/// Positions come before samples, and there are 8 of each: the recurrent layer knows the dimension of samples.
#[test]
fn a_layer_says_which_dimension_is_of_samples() {
    let audits = is_as_recorded("positions_first_8", 16, "positions_first_16");
    assert!(audits[0].doubts.iter().any(|doubt| doubt.contains("dimension 1 is taken")), "{audits:?}");
    // An explicit dimension is respected.
    let first = ResizeBatch { dims: BatchDims::At(0), ..ResizeBatch::to(16) };
    let (asked, audits) = step("positions_first_8", Some(first));
    assert_ne!(asked, step("positions_first_16", None).0);
    assert!(audits[0].doubts.is_empty(), "{audits:?}");
}

/// The numbers of nodes and edges per graph stay the same.
#[test]
fn nodes_and_edges_grow_with_the_graphs_of_a_batch() {
    is_as_recorded("graphs_4", 16, "graphs_16");
    is_as_recorded("graphs_16", 4, "graphs_4");
}

/// Its 64 nodes and 128 edges are multiples of the batch of 16 users.
#[test]
fn a_graph_that_all_samples_share_does_not_grow() {
    is_as_recorded("graph_16", 64, "graph_64");
}

/// Indices, values and offsets including the last one, of tables of one shape.
#[test]
fn sparse_gradients_grow_with_the_lookups() {
    is_as_recorded("bags_16", 64, "bags_64");
    is_as_recorded("bags_64", 16, "bags_16");
}
