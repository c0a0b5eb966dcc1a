//! Which module of a model ran which op, over a recorded step of a small transformer.

use std::path::Path;

use steptime::Step;
use steptime::graph::{OpId, Phase};
use steptime::trace::Options;

fn transformer() -> Step {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny_transformer");
    Step::open_with(&path, &Default::default(), &Options::default()).expect("test data")
}

/// The modules of the ops of one name, in the order in which they run.
fn of(step: &Step, name: &str) -> Vec<String> {
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
    assert_eq!(of(&step, "aten::linear"), linear);
    // What is inside an op is where that op is.
    assert_eq!(of(&step, "aten::addmm"), linear);
    linear.reverse();
    assert_eq!(of(&step, "AddmmBackward0"), linear);
    assert_eq!(of(&step, "aten::embedding"), ["Tiny.embed"]);
    assert_eq!(of(&step, "aten::scaled_dot_product_attention"), ["Tiny.blocks.0", "Tiny.blocks.1"]);
    assert_eq!(of(&step, "aten::cross_entropy_loss"), ["CrossEntropyLoss"]);
}

#[test]
fn gradients_are_added_up_where_they_were_made() {
    let step = transformer();
    let added = of(&step, "torch::autograd::AccumulateGrad");
    let count = |path: &str| added.iter().filter(|module| *module == path).count();
    // A weight and a bias of each.
    assert_eq!([count("Tiny.head"), count("Tiny.blocks.0.norm"), count("Tiny.blocks.1.mlp.2")], [2, 2, 2]);
    assert_eq!((count("Tiny.embed"), count("")), (1, 0));
}

#[test]
fn what_no_module_ran_is_of_none() {
    let step = transformer();
    let modules = step.modules();
    // The batch is cut to size before the model is called, with the number that its first op has too.
    assert_eq!(of(&step, "aten::slice").first().map(String::as_str), Some(""));
    let optimizer = |op: &OpId| step.graph.ops[*op].phase == Phase::Optimizer;
    assert!(step.graph.ops.keys().filter(optimizer).all(|op| modules.of[op].is_none()));
    assert!(step.graph.ops.keys().any(|op| optimizer(&op)));
}
