//! Boundaries of steps, and matching of steps that differ.

use steptime_graph::{ActivityId, Error, MarkId, OpId, Options, StepId, StepSource};

use crate::recording::{MAIN, Recording, ops, us};

fn one_op(recording: &mut Recording, at: f64) {
    recording.op("aten::mm", MAIN, at + 10.0, at + 50.0);
    recording.kernel([at + 20.0, at + 25.0], 7, [at + 30.0, at + 60.0]);
}

#[test]
fn marks_make_steps() {
    let graph = Recording::three_steps(one_op).graph();
    assert_eq!(graph.step_source, StepSource::Marked);
    let windows: Vec<_> = graph.steps.iter().map(|w| (w.number, w.start, w.end)).collect();
    let expected = [(5, 1000.0, 1100.0), (6, 1100.0, 1200.0), (7, 1200.0, 1300.0)];
    assert_eq!(windows, expected.map(|(n, start, end)| (n, us(start), us(end))));
    assert_eq!((graph.coverage.steps, graph.coverage.steps_alike), (3, 3));
    assert_eq!(ops(&graph), ["aten::mm"], "the mark itself is a window, not work");
    let periods: Vec<_> = graph.samples.steps().map(|step| graph.samples.period(step)).collect();
    assert_eq!(periods, [Some(us(100.0)); 3], "the last mark is as long as its step");
    assert_eq!(
        graph.samples.gap(StepId(1), MarkId(0), &graph.marks.raw[0]),
        Some(us(60.0)),
        "from the last mark of the step before"
    );
    assert_eq!(graph.samples.gap(StepId(0), MarkId(0), &graph.marks.raw[0]), None);
}

#[test]
fn a_step_marked_twice_is_one_step() {
    let mut recording = Recording::three_steps(one_op);
    for number in 5..8 {
        let at = 1000.0 + 100.0 * f64::from(number - 5);
        recording.op(&format!("ProfilerStep#{number}"), MAIN, at, at + 99.0);
    }
    let graph = recording.graph();
    assert_eq!(graph.steps.iter().map(|w| w.number).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(graph.coverage.steps_alike, 3);
}

#[test]
fn without_marks_a_loop_is_seen_to_repeat_itself() {
    let mut recording = Recording::default();
    // It begins in the middle of a step.
    let names = ["aten::loss", "Optimizer.step#SGD.step", "aten::to", "aten::mm"];
    for i in 0..4 * 5 + 2 {
        let at = 1000.0 + 10.0 * f64::from(i);
        recording.op(names[i as usize % 4], MAIN, at, at + 5.0);
    }
    let graph = recording.graph();
    assert_eq!(graph.step_source, StepSource::Repeated);
    assert_eq!(graph.steps.raw[0].start, us(1020.0), "a step begins after the optimizer");
    assert_eq!(graph.steps.iter().map(|w| w.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(ops(&graph), ["aten::to", "aten::mm", "aten::loss", "Optimizer.step#SGD.step"]);
    assert_eq!(graph.coverage.steps_alike, 5);
    assert_eq!(graph.samples.median_period(), Some(us(40.0)));
}

#[test]
fn a_trace_that_does_not_repeat_itself_is_one_step() {
    let mut recording = Recording::default();
    recording.op("aten::mm", MAIN, 10.0, 20.0);
    recording.op("aten::add", MAIN, 30.0, 40.0);
    recording.op("aten::loss", 2, 5.0, 90.0);
    recording.op("aten::sum", MAIN, 95.0, 99.0);
    let graph = recording.graph();
    assert_eq!((graph.step_source, graph.steps.len()), (StepSource::Whole, 1));
    assert_eq!(graph.ops.len(), 4, "nothing is lost at the ends");
    assert_eq!(graph.coverage.across_steps, 0);
}

#[test]
fn no_host_events_no_graph() {
    let mut recording = Recording::default();
    recording.ran("kernel", "k", 7, 10.0, 20.0);
    let error = recording.build(&Options::default()).expect_err("nothing on the host");
    assert_eq!(error, Error::NoHostEvents);
    assert!(error.to_string().contains("ProfilerActivity.CPU"), "{error}");
}

#[test]
fn a_step_with_one_call_more_keeps_its_other_samples() {
    let graph = Recording::steps(3, |recording, index, at| {
        one_op(recording, at);
        if index == 1 {
            recording.call("cudaEventQuery", at + 30.0, at + 31.0);
        }
    })
    .graph();
    assert_eq!((graph.coverage.steps_alike, graph.calls.len()), (2, 1));
    // Of 4, 6 and 4 marks, 12 have a match.
    assert_eq!(graph.coverage.marks_matched_permille, 857);
    for mark in 0..4 {
        assert!(graph.samples.mark(StepId(1), MarkId(mark)).is_some(), "mark {mark}");
    }
    let gap = |mark: u32| graph.samples.gap(StepId(1), MarkId(mark), &graph.marks[MarkId(mark)]);
    assert_eq!([gap(1), gap(2)], [Some(us(10.0)), Some(us(5.0))]);
    assert_eq!(gap(3), None, "the other call lies in it");
    assert_eq!(graph.samples.activity_duration(StepId(1), ActivityId(0)), Some(us(30.0)));
    assert!(graph.samples.steps().all(|step| graph.samples.mark(step, MarkId(3)).is_some()));
}

#[test]
fn a_step_that_lacks_a_call_lacks_only_its_samples() {
    let graph = Recording::steps(4, |recording, index, at| {
        recording.op("aten::mm", MAIN, at + 10.0, at + 90.0);
        recording.kernel([at + 20.0, at + 25.0], 7, [at + 30.0, at + 40.0]);
        if index != 2 {
            recording.call("cudaLaunchKernelExC", at + 50.0, at + 55.0);
            recording.ran("kernel", "k", 7, at + 60.0, at + 70.0);
        }
    })
    .graph();
    assert_eq!((graph.calls.len(), graph.activities.len()), (2, 2));
    let second = &graph.calls.raw[1];
    assert_eq!(
        (graph.samples.mark(StepId(2), second.begin), graph.samples.activity_start(StepId(2), ActivityId(1))),
        (None, None)
    );
    assert_eq!(graph.samples.activity_duration(StepId(2), ActivityId(0)), Some(us(10.0)));
    assert_eq!(graph.samples.mark(StepId(2), graph.ops.raw[0].end), Some(us(1290.0)));
}

#[test]
fn what_lies_across_steps_is_left_out_and_counted() {
    let mut recording = Recording::three_steps(one_op);
    recording.op("aten::save", 2, 1090.0, 1110.0);
    recording.op("aten::save", 2, 1295.0, 1320.0);
    let graph = recording.graph();
    assert_eq!(graph.coverage.across_steps, 2);
    assert_eq!(ops(&graph), ["aten::mm"]);
    assert_eq!(graph.threads.len(), 1);
    assert_eq!(graph.coverage.host_ops, 3 + 3 + 2, "all that the trace has, marks of steps too");
}

#[test]
fn an_event_longer_than_the_one_around_it_is_cut_to_fit() {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::linear", MAIN, at + 10.0, at + 50.0);
        recording.op("aten::mm", MAIN, at + 20.0, at + 60.0);
    })
    .graph();
    assert_eq!(graph.coverage.clamped, 3);
    assert_eq!(graph.ops.raw[1].parent, Some(OpId(0)));
    assert_eq!(graph.samples.mark(StepId(0), graph.ops.raw[1].end), Some(us(1050.0)));
}

#[test]
fn launches_outside_any_op_are_counted_and_kept() {
    let graph = Recording::three_steps(|recording, at| {
        one_op(recording, at);
        recording.kernel([at + 60.0, at + 65.0], 7, [at + 70.0, at + 80.0]);
    })
    .graph();
    let coverage = graph.coverage;
    assert_eq!((coverage.launches, coverage.launches_in_op, coverage.launches_outside), (6, 3, 3));
    assert!((coverage.attributed_share() - 0.5).abs() < 1e-9);
    assert!((coverage.linked_share() - 1.0).abs() < 1e-9);
    assert_eq!(graph.calls.iter().map(|call| call.op).collect::<Vec<_>>(), [Some(OpId(0)), None]);
    assert_eq!(graph.activities.len(), 2);
}

#[test]
fn one_step_can_be_chosen() {
    let recording = Recording::steps(3, |recording, index, at| {
        one_op(recording, at);
        if index == 1 {
            recording.op("aten::add", MAIN, at + 70.0, at + 80.0);
        }
    });
    let graph = recording.build(&Options { step: Some(6) }).expect("step 6 is there");
    assert_eq!((graph.samples.steps().len(), graph.steps.len(), graph.steps.raw[0].number), (1, 1, 6));
    assert_eq!(ops(&graph), ["aten::mm", "aten::add"], "it is the template, though the others differ");
    assert_eq!(graph.coverage.steps, 3);

    let error = recording.build(&Options { step: Some(9) }).expect_err("there is no step 9");
    assert_eq!(error, Error::NoSuchStep { wanted: 9, known: vec![5, 6, 7] });
    assert_eq!(error.to_string(), "no step 9 in the trace: it has 3 steps, 5 to 7");
    let single = Recording::steps(1, |recording, _, at| one_op(recording, at));
    let error = single.build(&Options { step: Some(0) }).expect_err("it is called 5");
    assert_eq!(error.to_string(), "no step 0 in the trace: it has only step 5");
}

#[test]
fn where_no_two_steps_are_alike_the_warm_up_is_not_the_template() {
    let graph = Recording::steps(8, |recording, index, at| {
        let extra = if index == 0 { 12 } else { 1 };
        recording.op("aten::mm", MAIN, at + 1.0, at + 5.0);
        for i in 0..extra {
            let from = at + 10.0 + 5.0 * f64::from(i);
            recording.op(&format!("aten::extra{}", index * 20 + i), MAIN, from, from + 2.0);
        }
        recording.op("aten::add", MAIN, at + 90.0, at + 95.0);
    })
    .graph();
    assert_eq!(graph.coverage.steps_alike, 1);
    assert_eq!(graph.ops.len(), 3, "{:?}", ops(&graph));
}

/// Returns passes over layers: an op before, equal layers, an op after; `passes` of them.
fn layers(passes: u32, around: bool, optimizer: bool) -> steptime_graph::StepGraph {
    let mut recording = Recording::default();
    let mut at = 1000.0;
    let mut op = |recording: &mut Recording, name: &str| {
        recording.op(name, MAIN, at, at + 4.0);
        at += 5.0;
    };
    for _ in 0..passes {
        if around {
            op(&mut recording, "aten::embedding");
        }
        for _ in 0..12 {
            for name in ["aten::layer_norm", "aten::linear", "aten::gelu", "aten::add"] {
                op(&mut recording, name);
            }
            if optimizer {
                op(&mut recording, "Optimizer.step#SGD.step");
            }
        }
        if around {
            op(&mut recording, "aten::log_softmax");
        }
    }
    recording.graph()
}

#[test]
fn a_sweep_of_layers_is_one_step() {
    use steptime_graph::StepSource;
    let graph = layers(1, true, false);
    assert_eq!((graph.step_source, graph.steps.len()), (StepSource::Whole, 1));
    // Several passes are several steps, each with all its layers.
    let graph = layers(4, true, false);
    assert_eq!((graph.step_source, graph.steps.len()), (StepSource::Repeated, 4));
    assert_eq!(graph.ops.len(), 50);
    // A repetition with nothing around it, or that ends with an optimizer, is a loop of steps.
    assert_eq!(layers(1, false, false).steps.len(), 12);
    assert_eq!(layers(1, true, true).step_source, StepSource::Repeated);
}
