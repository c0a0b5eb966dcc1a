//! A step without some of its ops.

use crate::common;

use common::{counts, named, open, takes};
use steptime_rewrite::{Error, Remove, SecondStream, Selection};
use steptime_step::schedule;

fn chosen(text: &str) -> Vec<Selection> {
    text.split(',').map(|each| each.parse().expect("a selection")).collect()
}

#[test]
fn what_computes_gradients_through_an_op_goes_with_it() {
    let example = open("resnet50_32");
    let step = example.after(&Remove { ops: chosen("aten::relu_,aten::max_pool2d") }).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    for gone in [
        "aten::relu_",
        "aten::max_pool2d",
        "ReluBackward0",
        "aten::threshold_backward",
        "MaxPool2DWithIndicesBackward0",
    ] {
        assert!(was[gone] > 0 && !now.contains_key(gone), "{gone}");
    }
    for kept in ["aten::conv2d", "aten::batch_norm", "aten::add_", "torch::autograd::AccumulateGrad"] {
        assert_eq!(was[kept], now[kept], "{kept}");
    }
    // A pool changes the shape: its consumer still takes a tensor of that shape.
    for (before, after) in named(&example.step, "aten::conv2d").into_iter().zip(named(&step, "aten::conv2d"))
    {
        assert_eq!(takes(&example.step, before), takes(&step, after));
    }
}

#[test]
fn gradients_of_parameters_that_are_not_used_are_not_added_up() {
    let example = open("dlrm_default_2048");
    let layers = named(&example.step, "aten::linear");
    let number = Selection::Numbered(u32::try_from(usize::from(layers[1])).unwrap());
    let step = example.after(&Remove { ops: vec![number] }).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    assert_eq!(now["aten::linear"], was["aten::linear"] - 1);
    assert_eq!(now["AddmmBackward0"], was["AddmmBackward0"] - 1);
    assert_eq!(now["torch::autograd::AccumulateGrad"], was["torch::autograd::AccumulateGrad"] - 2);
    let graph = schedule(&step, &example.step, &example.graph, &example.ops).graph;
    assert!(graph.activities.len() < example.graph.activities.len());
}

#[test]
fn chosen_ops_go_beside_the_others() {
    let example = open("dlrm_default_2048");
    let step = example.after(&SecondStream { ops: chosen("aten::embedding_bag") }).expect("it applies");
    let moved = step.running().into_iter().filter(|&op| step.ops[op].stream == 1 && step.outermost(op) == op);
    let moved: Vec<&str> = moved.map(|op| &*step.ops[op].name).collect();
    let of = |name: &str| moved.iter().filter(|other| **other == name).count();
    assert_eq!(of("aten::embedding_bag"), counts(&example.step)["aten::embedding_bag"], "{moved:?}");
    assert!(of("autograd::engine::evaluate_function: EmbeddingBagBackward0") > 0, "{moved:?}");
    assert!(counts(&step)["wait_stream"] >= 2);
}

#[test]
fn what_is_not_there_is_said() {
    let example = open("resnet50_32");
    let refused = |ops: Vec<Selection>| example.after(&Remove { ops }).unwrap_err();
    assert!(matches!(refused(chosen("aten::embedding*")), Error::NoSuchOp { .. }));
    assert!(matches!(refused(vec![Selection::Numbered(u32::MAX)]), Error::NoSuchOp { .. }));
    assert!(matches!(refused(chosen("*")), Error::NothingToDo { .. }));
    let on_host = example.after(&SecondStream { ops: chosen("aten::_local_scalar_dense,Optimizer*") });
    assert!(matches!(on_host, Err(Error::NothingToDo { .. } | Error::NoSuchOp { .. })), "{on_host:?}");
}
