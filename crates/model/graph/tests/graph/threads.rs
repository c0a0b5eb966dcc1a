//! Hand-offs between threads, and the parts of a step.

use steptime_graph::{HostThreadId, MarkId, OpId, Phase, Role};

use crate::recording::{MAIN, Recording, ops};

const AUTOGRAD: i64 = 2;
const WORKER: i64 = 3;
const BACKWARD: &str = "autograd::engine::evaluate_function: MmBackward0";

fn forward_and_backward(recording: &mut Recording, at: f64) {
    recording.op("aten::mm", MAIN, at + 1.0, at + 10.0);
    recording.op(BACKWARD, AUTOGRAD, at + 30.0, at + 60.0);
    recording.op("aten::add_", MAIN, at + 80.0, at + 90.0);
}

#[test]
fn the_backward_pass_is_handed_over_and_back() {
    let graph = Recording::three_steps(forward_and_backward).graph();
    assert_eq!(graph.threads.iter().map(|t| t.role).collect::<Vec<_>>(), [Role::Main, Role::Autograd]);
    assert_eq!(graph.coverage.hand_offs, 2);
    let [mm, add, backward] = [0, 1, 2].map(|op| graph.ops[OpId(op)]);
    let mark = |mark: MarkId| (graph.marks[mark].after, graph.marks[mark].wraps);
    assert_eq!(mark(backward.begin), (mm.end, false));
    assert_eq!(mark(add.begin), (backward.end, false));
    assert_eq!(mark(mm.begin), (add.end, true));
}

#[test]
fn a_step_that_ends_on_the_other_thread_is_handed_over_to_the_next() {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::mm", MAIN, at + 1.0, at + 10.0);
        recording.op(BACKWARD, AUTOGRAD, at + 30.0, at + 60.0);
    })
    .graph();
    assert_eq!(graph.coverage.hand_offs, 2);
    let (mm, backward) = (graph.ops.raw[0], graph.ops.raw[1]);
    let first = graph.marks[mm.begin];
    assert_eq!((first.after, first.wraps), (backward.end, true));
}

#[test]
fn threads_that_run_side_by_side_hand_nothing_over() {
    // The worker's op has another position among the main thread's ops in every step.
    let graph = Recording::steps(10, |recording, index, at| {
        for i in 0..9 {
            let from = at + 1.0 + 10.0 * f64::from(i);
            recording.op("aten::mm", MAIN, from, from + 5.0);
        }
        let from = at + 7.0 + 10.0 * f64::from(index * 7 % 8);
        recording.op("aten::collate", WORKER, from, from + 2.0);
    })
    .graph();
    assert_eq!(graph.coverage.steps_alike, 10);
    assert_eq!(graph.threads.iter().map(|t| t.role).collect::<Vec<_>>(), [Role::Main, Role::Other]);
    assert_eq!(graph.coverage.hand_offs, 0);
    // Except for its first mark: it works once a step, so the main thread paces it. Otherwise it would wait for
    // the length of a step, and so set the pace.
    let first = graph.threads.raw[1].first_mark;
    for (at, mark) in graph.marks.iter_enumerated() {
        let thread = if at == first { HostThreadId::MAIN } else { mark.thread };
        assert_eq!(graph.marks[mark.after].thread, thread, "{at:?}");
    }
    assert!(!graph.marks[first].wraps);
}

#[test]
fn one_exception_in_ten_steps_is_still_a_hand_off() {
    let graph = Recording::steps(10, |recording, index, at| {
        forward_and_backward(recording, at);
        if index == 4 {
            recording.op("aten::log", MAIN, at + 20.0, at + 25.0);
        }
    })
    .graph();
    assert_eq!((graph.coverage.steps_alike, graph.coverage.hand_offs), (9, 2));
}

#[test]
fn in_a_single_step_only_a_long_wait_is_a_hand_off() {
    let one = |from: f64| {
        Recording::steps(1, |recording, _, at| {
            recording.op("aten::mm", MAIN, at + 1.0, at + 10.0);
            recording.op("aten::mul", AUTOGRAD, at + 2.0, at + 3.0);
            recording.op(BACKWARD, AUTOGRAD, at + from, at + 60.0);
            recording.op("aten::add_", MAIN, at + 62.0, at + 90.0);
        })
        .graph()
        .coverage
        .hand_offs
    };
    assert_eq!(
        one(40.0),
        3,
        "the other thread's first op, of whose wait nothing is known, then 37 and 52 of nothing"
    );
    assert_eq!(one(15.0), 2, "12 could be anything");
}

#[test]
fn every_op_belongs_to_a_part_of_the_step() {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::to", MAIN, at + 1.0, at + 9.0);
        recording.op("aten::copy_", MAIN, at + 2.0, at + 8.0);
        recording.copy([at + 3.0, at + 7.0], [at + 8.0, at + 9.0]);
        recording.annotation("Optimizer.zero_grad#SGD.zero_grad", MAIN, at + 10.0, at + 12.0);
        recording.op("aten::mm", MAIN, at + 15.0, at + 20.0);
        recording.kernel([at + 16.0, at + 17.0], 7, [at + 18.0, at + 19.0]);
        recording.op(BACKWARD, AUTOGRAD, at + 30.0, at + 60.0);
        recording.op("aten::mm", AUTOGRAD, at + 31.0, at + 59.0);
        recording.op("aten::norm", MAIN, at + 65.0, at + 67.0);
        recording.annotation("Optimizer.step#SGD.step", MAIN, at + 70.0, at + 80.0);
        recording.op("aten::_foreach_add_", MAIN, at + 71.0, at + 79.0);
        recording.op("aten::collate", WORKER, at + 5.0, at + 50.0);
    })
    .graph();
    let parts: Vec<(&str, Phase)> =
        ops(&graph).into_iter().zip(graph.ops.iter().map(|op| op.phase)).collect();
    assert_eq!(
        parts,
        [
            ("aten::to", Phase::Input),
            ("aten::copy_", Phase::Input),
            ("Optimizer.zero_grad#SGD.zero_grad", Phase::Optimizer),
            ("aten::mm", Phase::Forward),
            ("aten::norm", Phase::Other),
            ("Optimizer.step#SGD.step", Phase::Optimizer),
            ("aten::_foreach_add_", Phase::Optimizer),
            (BACKWARD, Phase::Backward),
            ("aten::mm", Phase::Backward),
            ("aten::collate", Phase::Other),
        ]
    );
    assert!(
        graph.ops.raw[2].annotation && graph.is_top_level(OpId(6)),
        "an annotation is not an op around another"
    );
    assert_eq!(graph.top_level(OpId(1)), OpId(0));
}

#[test]
fn without_a_copy_there_is_no_input() {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::randn", MAIN, at + 1.0, at + 9.0);
        recording.op("aten::mm", MAIN, at + 15.0, at + 20.0);
        recording.kernel([at + 16.0, at + 17.0], 7, [at + 18.0, at + 19.0]);
        // The loss is copied back to the host, and the next batch is fetched early.
        recording.op("aten::to", MAIN, at + 30.0, at + 40.0);
        recording.copy([at + 31.0, at + 32.0], [at + 33.0, at + 34.0]);
    })
    .graph();
    assert!(graph.ops.iter().all(|op| op.phase == Phase::Forward));
}

#[test]
fn traces_without_the_engine_have_a_backward_pass_all_the_same() {
    use steptime_graph::Phase;
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::mm", MAIN, at + 5.0, at + 30.0);
        recording.op("MmBackward", WORKER, at + 35.0, at + 55.0);
        recording.op("torch::autograd::AccumulateGrad", WORKER, at + 57.0, at + 60.0);
        recording.op("aten::add_", MAIN, at + 70.0, at + 80.0);
    })
    .graph();
    assert_eq!(graph.threads.iter().map(|t| t.role).collect::<Vec<_>>(), [Role::Main, Role::Autograd]);
    let phases: Vec<Phase> = graph.ops.iter().map(|op| op.phase).collect();
    assert_eq!(phases, [Phase::Forward, Phase::Other, Phase::Backward, Phase::Backward]);
}
