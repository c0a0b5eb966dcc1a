//! Recomputation of activations in the backward pass.

use crate::common;

use common::{counts, named, open, takes};
use steptime_graph::HostThreadId;
use steptime_rewrite::{Blocks, Checkpoint, Error};
use steptime_step::{Peak, StepIr, schedule};

const EACH: Checkpoint = Checkpoint { segments: None, blocks: Blocks::Repeated };
const ONE: Checkpoint = Checkpoint { segments: Some(1), blocks: Blocks::Repeated };

fn convolutions(step: &StepIr) -> usize {
    counts(step)["aten::cudnn_convolution"]
}

#[test]
fn blocks_run_again_on_the_thread_of_the_backward_pass() {
    let example = open("resnet50_32");
    let step = example.after(&EACH).expect("it applies");
    let again: Vec<_> = step.running().into_iter().filter(|&op| step.ops[op].again.is_some()).collect();
    assert!(again.iter().all(|&op| step.ops[op].thread != HostThreadId::MAIN));
    let repeated =
        named(&step, "aten::cudnn_convolution").into_iter().filter(|op| again.contains(op)).count();
    assert_eq!(convolutions(&step), convolutions(&example.step) + repeated);
    // Per stage the blocks after the first: 2, 3, 5 and 2, of three convolutions each.
    assert!((30..=53).contains(&repeated), "{repeated}");
    let backward = |step: &StepIr| counts(step)["aten::convolution_backward"];
    assert_eq!(backward(&step), backward(&example.step));
    // A gradient takes the recomputed tensor, of the same shape.
    for (before, after) in named(&example.step, "aten::convolution_backward")
        .into_iter()
        .zip(named(&step, "aten::convolution_backward"))
    {
        assert_eq!(takes(&example.step, before), takes(&step, after));
    }
}

#[test]
fn what_runs_again_makes_the_same_calls() {
    let example = open("resnet50_32");
    let step = example.after(&EACH).expect("it applies");
    let now = schedule(&step, &example.step, &example.graph, &example.ops);
    let kernels = |scheduled: &steptime_graph::StepGraph| scheduled.activities.len();
    let mut more = 0;
    for op in step.running() {
        if let Some(source) = step.ops[op].again.and_then(|source| step.recorded(source)) {
            let own = example.graph.calls.iter().filter(|call| call.op == Some(source));
            more += own.map(|call| call.activities().len()).sum::<usize>();
        }
    }
    assert!(more > 0);
    assert_eq!(kernels(&now.graph), kernels(&example.graph) + more);
    // Inside them, host time does not change.
    assert!(now.carried.like.iter().filter(|like| like.is_some()).count() > more);
}

#[test]
fn activations_shrink_and_the_model_does_not() {
    let example = open("resnet50_32");
    let peak = |step: &StepIr| {
        let scheduled = schedule(step, &example.step, &example.graph, &example.ops);
        Peak::find(step, &scheduled, Some(9)).total()
    };
    let [before, one, each] = [
        peak(&example.step),
        peak(&example.after(&ONE).expect("it applies")),
        peak(&example.after(&EACH).expect("it applies")),
    ];
    assert!(each < before * 3 / 4 && one < before * 3 / 4, "{each} {one} {before}");
}

#[test]
fn a_model_without_blocks_is_named() {
    let Err(Error::NothingToDo { reason }) = open("dlrm_default_2048").after(&EACH) else {
        panic!("it has none")
    };
    assert!(reason.contains("no chain of equal blocks"), "{reason}");
}
