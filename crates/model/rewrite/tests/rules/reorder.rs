//! Copies of inputs right before their first consumers.

use crate::common;

use common::{counts, named, open, takes};
use steptime_rewrite::{Error, Reorder};
use steptime_step::{OpId, StepIr, schedule};

/// Outermost ops of the script, in order.
fn script(step: &StepIr) -> Vec<OpId> {
    let ops = step.running().into_iter();
    ops.filter(|&op| step.ops[op].thread == steptime_graph::HostThreadId::MAIN && step.outermost(op) == op)
        .filter(|&op| !step.ops[op].annotation)
        .collect()
}

#[test]
fn indices_are_copied_where_they_are_looked_up() {
    let example = open("dlrm_default_2048");
    let step = example.after(&Reorder).expect("it applies");
    assert_eq!(counts(&step), counts(&example.step));
    let order = script(&step);
    let names: Vec<&str> = order.iter().map(|&op| &*step.ops[op].name).collect();
    // The bottom layers run before indices of the first table are copied.
    let first_bag = names.iter().position(|name| *name == "aten::embedding_bag").expect("a bag");
    assert!(names[..first_bag].contains(&"aten::linear"));
    assert_eq!(names[first_bag - 1], "aten::to");
    // The offsets of the first table's bags, one per sample.
    assert_eq!(takes(&step, order[first_bag - 1])[0], [2048]);
    let was = script(&example.step);
    let is_linear = |&op: &OpId| example.step.ops[op].name == "aten::linear";
    let first_linear = was.iter().position(is_linear).expect("a layer");
    let copies =
        |ops: &[OpId], step: &StepIr| ops.iter().filter(|&&op| step.ops[op].name == "aten::to").count();
    let linear = names.iter().position(|name| *name == "aten::linear").expect("a layer");
    assert!(copies(&order[..linear], &step) < copies(&was[..first_linear], &example.step));
}

#[test]
fn what_was_recorded_carries_over() {
    let example = open("dlrm_default_2048");
    let step = example.after(&Reorder).expect("it applies");
    let after = schedule(&step, &example.step, &example.graph, &example.ops);
    assert_eq!(after.circle(), None);
    assert_eq!(after.graph.activities.len(), example.graph.activities.len());
    let copies = named(&step, "aten::copy_");
    assert!(copies.iter().all(|&op| step.recorded(op).is_some()));
}

#[test]
fn twice_is_an_error() {
    let mut example = open("dlrm_default_2048");
    example.step = example.after(&Reorder).expect("it applies");
    let error = example.after(&Reorder).unwrap_err();
    assert!(matches!(&error, Error::NothingToDo { reason } if reason.contains("right before")), "{error}");
}
