//! Assignment of ops to modules of a model, in a recorded step of a small transformer.

use std::path::Path;

use steptime_graph::{OpId, Phase};
use steptime_predict::Step;
use steptime_rewrite::{Error as Refusal, FuseAmong, Fusion, Remove, Selection};
use steptime_trace::Options;

fn transformer() -> Step {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny_transformer");
    Step::open_with(&path, &Default::default(), &Options::default()).expect("test data")
}

/// Modules of the ops of one name, in order of execution.
fn modules_of(step: &Step, name: &str) -> Vec<String> {
    let modules = step.modules();
    let ops = step.graph.ops.keys().filter(|&op| step.graph.op_name(op) == name);
    ops.map(|op| modules.of[op].map_or(String::new(), |module| modules.list[module].path.clone())).collect()
}

#[test]
fn ops_belong_to_the_innermost_module_that_called_them() {
    let step = transformer();
    let mut linear: Vec<String> = Vec::new();
    for block in ["Tiny.blocks.0", "Tiny.blocks.1"] {
        linear.extend(["qkv", "out", "mlp.0", "mlp.2"].map(|name| format!("{block}.{name}")));
    }
    linear.push("Tiny.head".into());
    assert_eq!(modules_of(&step, "aten::linear"), linear);
    // Child ops belong to the module of their parent.
    assert_eq!(modules_of(&step, "aten::addmm"), linear);
    linear.reverse();
    assert_eq!(modules_of(&step, "AddmmBackward0"), linear);
    assert_eq!(modules_of(&step, "aten::embedding"), ["Tiny.embed"]);
    assert_eq!(modules_of(&step, "aten::scaled_dot_product_attention"), ["Tiny.blocks.0", "Tiny.blocks.1"]);
    assert_eq!(modules_of(&step, "aten::cross_entropy_loss"), ["CrossEntropyLoss"]);
}

#[test]
fn gradients_are_added_up_where_they_were_made() {
    let step = transformer();
    let added = modules_of(&step, "torch::autograd::AccumulateGrad");
    let count = |path: &str| added.iter().filter(|module| *module == path).count();
    // One weight and one bias each.
    assert_eq!([count("Tiny.head"), count("Tiny.blocks.0.norm"), count("Tiny.blocks.1.mlp.2")], [2, 2, 2]);
    assert_eq!((count("Tiny.embed"), count("")), (1, 0));
}

#[test]
fn what_no_module_ran_is_of_none() {
    let step = transformer();
    let modules = step.modules();
    // The batch is sliced before the model is called, under the sequence number that the model's first op has too.
    assert_eq!(modules_of(&step, "aten::slice").first().map(String::as_str), Some(""));
    let optimizer = |op: &OpId| step.graph.ops[*op].phase == Phase::Optimizer;
    assert!(step.graph.ops.keys().filter(optimizer).all(|op| modules.of[op].is_none()));
    assert!(step.graph.ops.keys().any(|op| optimizer(&op)));
}

fn module(path: &str) -> Vec<Selection> {
    vec![format!("module:{path}").parse().expect("a selection")]
}

/// Number of ops of a name after ops are removed.
fn left(step: &Step, path: &str, name: &str) -> usize {
    let found = step.predict().on("h200").expect("a device");
    let changed = found.what_if(&[&Remove { ops: module(path) }]).expect("it applies");
    let graph = &changed.scheduled.graph;
    graph.ops.keys().filter(|&op| graph.op_name(op) == name).count()
}

#[test]
fn a_module_is_left_out_with_its_backward_pass() {
    let step = transformer();
    for (path, layers) in
        [("Tiny.blocks.1", 5), ("Tiny.blocks.1.mlp", 7), ("Tiny.blocks.*.mlp", 5), ("*.head", 8)]
    {
        assert_eq!(left(&step, path, "aten::linear"), layers, "{path}");
        assert_eq!(left(&step, path, "AddmmBackward0"), layers, "{path}");
    }
}

#[test]
fn what_is_no_module_is_refused() {
    let step = transformer();
    let question = step.predict().on("h200").expect("a device");
    let refused =
        |path: &str| question.what_if(&[&Remove { ops: module(path) }]).err().map(|error| error.to_string());
    assert!(
        refused("Tiny.tail").is_some_and(|text| text.contains("no module matches Tiny.tail")),
        "{:?}",
        refused("Tiny.tail")
    );
    let fuse = FuseAmong { what: Fusion::Linear, ops: module("Tiny.head") };
    let Err(error) = question.what_if(&[&fuse]) else { panic!("there is no ReLU") };
    assert!(
        matches!(error, steptime_predict::Error::Rewrite { ref source, .. } if matches!(source.source, Refusal::NothingToDo { .. })),
        "{error}"
    );
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/dlrm_default_2048");
    let error = steptime_predict::open(example)
        .expect("an example")
        .predict()
        .what_if(&[&Remove { ops: module("DLRM") }]);
    assert!(error.err().is_some_and(|error| error.to_string().contains("record the step again")));
}
