//! Numbers that are read back.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_aten::Arg;
use steptime_graph::{Blocking, StepGraph};
use steptime_rewrite::{Error, NoSync};
use steptime_step::{Call, NewOp, Patch, Place, StepIr, schedule};

const READ: &str = "aten::_local_scalar_dense";

/// The example with its loss read back; `around` is the op that reads it.
fn reading(around: &str) -> Example {
    let mut example = open("resnet50_32");
    let loss = named(&example.step, "aten::nll_loss_forward")[0];
    let made = example.step.ops[loss].call.as_ref().expect("a call").gives().next().expect("a loss");
    let call = || Call { inputs: vec![Arg::Tensor(made)], ..Call::default() };
    let mut patch = Patch::new("test");
    let item = NewOp::new(around, call()).with(vec![NewOp::new(READ, call())]);
    patch.insert.push((Place::After(example.step.outermost(loss)), item));
    example.step.apply(&patch, &example.ops).expect("it can be read");
    example
}

fn waits(example: &Example, step: &StepIr) -> usize {
    let waits = |graph: &StepGraph| {
        graph.calls.iter().filter(|call| matches!(call.blocking, Blocking::Streams(_))).count()
    };
    let before = open("resnet50_32").step;
    waits(&schedule(step, &before, &example.graph, &example.ops).graph)
}

#[test]
fn a_loss_is_not_read() {
    let example = reading("aten::item");
    assert!(takes(&example.step, named(&example.step, READ)[0])[0].is_empty());
    let step = example.after(&NoSync).expect("it applies");
    assert!(named(&step, READ).is_empty());
    assert_eq!(counts(&step), counts(&open("resnet50_32").step));
    assert_eq!(waits(&example, &step) + 1, waits(&example, &example.step));
}

#[test]
fn what_ops_need_is_read_and_said() {
    let Err(Error::NothingToDo { reason }) = reading("aten::repeat_interleave").after(&NoSync) else {
        panic!("its result's size is what is read")
    };
    assert!(reason.contains("needed: 1 by other ops"), "{reason}");
    let Err(Error::NothingToDo { reason }) = open("resnet50_32").after(&NoSync) else {
        panic!("nothing is read")
    };
    assert!(reason.contains("no op reads"), "{reason}");
}
