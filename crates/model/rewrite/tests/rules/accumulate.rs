//! Accumulated gradients of several batches before one update.

use crate::common;

use common::{Example, counts, named, open, takes};
use steptime_graph::HostThreadId;
use steptime_rewrite::{Accumulate, Error};
use steptime_step::{Call, NewOp, Patch, Peak, Place, StepIr, schedule};

const THREE: Accumulate = Accumulate { batches: 3 };

#[test]
fn every_batch_runs_both_passes_and_the_optimizer_runs_once() {
    let example = open("resnet50_32");
    let step = example.after(&THREE).expect("it applies");
    let (was, now) = (counts(&example.step), counts(&step));
    for name in ["aten::cudnn_convolution", "aten::convolution_backward", "aten::_log_softmax"] {
        assert_eq!(now[name], 3 * was[name], "{name}");
    }
    for name in ["aten::_foreach_add_", "Optimizer.step#SGD.step"] {
        assert_eq!(now.get(name), was.get(name), "{name}");
    }
    // Every parameter keeps its first gradient, and later ones are added to it.
    let parameters = was["torch::autograd::AccumulateGrad"];
    assert_eq!(now["torch::autograd::AccumulateGrad"], 3 * parameters);
    let adds = |op: &steptime_step::OpId| {
        step.ops[*op].parent.is_some_and(|parent| step.ops[parent].name == "torch::autograd::AccumulateGrad")
    };
    let adds: Vec<_> = named(&step, "aten::add_").into_iter().filter(adds).collect();
    assert_eq!(adds.len(), 2 * parameters);
    for op in adds {
        let shapes = takes(&step, op);
        assert_eq!(shapes[0], shapes[1]);
    }
    assert_eq!(now["aten::detach"], was["aten::detach"]);
}

#[test]
fn a_batch_begins_when_the_gradients_of_the_last_are_there() {
    let example = open("resnet50_32");
    let step = example.after(&THREE).expect("it applies");
    let scheduled = schedule(&step, &example.step, &example.graph, &example.ops);
    let graph = &scheduled.graph;
    // From the script to the engine and back, once per batch.
    let hand_offs = graph.marks.keys().filter(|&mark| graph.is_hand_off(mark) && !graph.marks[mark].wraps);
    let to = |main: bool| {
        let to = |mark: &steptime_graph::MarkId| (graph.marks[*mark].thread == HostThreadId::MAIN) == main;
        hand_offs.clone().filter(to).count()
    };
    assert_eq!((to(true), to(false)), (3, 3));
    let activities =
        |name: &str| graph.activities.iter().filter(|row| graph.names.get(row.name).contains(name)).count();
    let recorded = example.graph.activities.iter();
    let before = recorded.filter(|row| example.graph.names.get(row.name).contains("Memcpy HtoD")).count();
    assert_eq!(activities("Memcpy HtoD"), 3 * before);
}

/// The same with a last op of the script after the optimizer's step, such as `loss.item()`.
fn with_last(example: &Example, name: &str, sequence: Option<i64>) -> StepIr {
    let mut step = example.step.clone();
    let update = named(&step, "Optimizer.step#SGD.step")[0];
    let mut patch = Patch::new("test");
    patch.insert.push((Place::After(update), NewOp::new(name, Call::default())));
    step.apply(&patch, &example.ops).expect("an op more");
    let last = named(&step, name).pop().expect("it is there");
    step.ops[last].sequence = sequence;
    step
}

#[test]
fn what_comes_after_the_update_runs_once() {
    let mut example = open("resnet50_32");
    example.step = with_last(&example, "aten::item", None);
    let step = example.after(&THREE).expect("it applies");
    assert_eq!(counts(&step)["aten::item"], counts(&example.step)["aten::item"]);
    assert_eq!(schedule(&step, &example.step, &example.graph, &example.ops).circle(), None);
}

#[test]
fn what_trains_after_the_update_is_refused() {
    let mut example = open("resnet50_32");
    let function = |op: &&steptime_step::Op| op.name.contains("evaluate_function");
    let number = example.step.ops.iter().filter(function).find_map(|op| op.sequence);
    assert!(number.is_some());
    example.step = with_last(&example, "aten::tanh", number);
    let error = example.after(&THREE).unwrap_err();
    assert!(matches!(&error, Error::SeveralUpdates { op } if op == "aten::tanh"), "{error}");
}

#[test]
fn threads_that_wait_for_one_another_are_found() {
    let example = open("resnet50_32");
    let mut scheduled = schedule(&example.step, &example.step, &example.graph, &example.ops);
    assert_eq!(scheduled.circle(), None);
    let graph = &mut scheduled.graph;
    let hands_over = |mark: &steptime_graph::MarkId| graph.is_hand_off(*mark) && !graph.marks[*mark].wraps;
    let mark = graph.marks.keys().find(hands_over).expect("a hand-off");
    let from = graph.marks[mark].after;
    let last = graph.threads[graph.marks[mark].thread].end_mark;
    graph.marks[from].after = steptime_graph::MarkId(last.0 - 1);
    assert!(scheduled.circle().is_some());
}

#[test]
fn gradients_are_held_once() {
    let example = open("resnet50_32");
    let peak = |rule: &Accumulate| {
        let step = example.after(rule).expect("it applies");
        Peak::find(&step, &schedule(&step, &example.step, &example.graph, &example.ops), Some(9)).total()
    };
    let [one, two, three] = [1, 2, 3].map(|batches| peak(&Accumulate { batches }));
    // The parameters are 102 MB.
    assert!(two > one && two < one + 120_000_000, "{one} {two}");
    assert_eq!(two, three);
}

#[test]
fn sparse_gradients_have_the_rows_of_all_batches() {
    let example = open("dlrm_default_2048");
    let step = example.after(&THREE).expect("it applies");
    // SGD adds the looked-up rows to their table.
    let rows = |step: &StepIr| -> Vec<i64> {
        let added = named(step, "aten::index_add_").into_iter();
        added.map(|op| takes(step, op)[1][0]).collect()
    };
    let (was, now) = (rows(&example.step), rows(&step));
    assert!(!was.is_empty());
    assert_eq!(now, was.iter().map(|rows| 3 * rows).collect::<Vec<i64>>());
    let none = open("resnet50_32").after(&Accumulate { batches: 0 });
    assert!(matches!(none, Err(Error::Accumulated { batches: 0, .. })));
}
