//! Recordings by other tools and versions: steps that lost kernels, warm-up, times of whole microseconds, links without correlation.

use steptime_graph::{ApiKind, StepId, StepSource};

use crate::recording::{MAIN, Recording, ops, us};

fn launch(recording: &mut Recording, at: f64) {
    recording.op("aten::mm", MAIN, at + 10.0, at + 50.0);
    recording.kernel([at + 20.0, at + 25.0], 7, [at + 30.0, at + 60.0]);
}

#[test]
fn of_three_unlike_steps_the_biggest_is_not_the_template() {
    let graph = Recording::three_steps(|recording, at| {
        launch(recording, at);
        let queries = match at as u32 {
            1000 => 12,
            1100 => 2,
            _ => 3,
        };
        for query in 0..queries {
            let from = at + 70.0 + f64::from(query);
            recording.call("cudaEventQuery", from, from + 0.5);
        }
    })
    .graph();
    assert_eq!(graph.coverage.steps_alike, 1);
    assert!(graph.samples.template() > StepId(0));
    assert!(graph.calls.len() <= 4, "{} calls", graph.calls.len());
}

#[test]
fn the_last_mark_is_as_long_as_its_step_where_marks_follow_one_another() {
    let mut slow_at_first = Recording::default();
    for (number, from, to) in [(1, 0.0, 190.0), (2, 190.0, 290.0), (3, 290.0, 394.0)] {
        slow_at_first.step_mark(number, from, to);
        launch(&mut slow_at_first, from);
    }
    let graph = slow_at_first.graph();
    assert_eq!(graph.samples.median_period(), Some(us(104.0)), "of 190, 100 and 104");
    assert_eq!(graph.witness.period, Some(us(104.0)));

    let mut apart = Recording::default();
    for number in 0..3 {
        let from = 100.0 * f64::from(number);
        apart.step_mark(number, from, from + 65.0);
        launch(&mut apart, from);
    }
    let graph = apart.graph();
    assert_eq!(graph.samples.period(StepId(2)), None, "work lies between marks: the last says nothing");
}

#[test]
fn steps_of_warm_up_are_left_out() {
    let mut recording = Recording::default();
    let mut at = 0.0;
    for (number, length) in (0..).zip([900.0, 300.0, 102.0, 100.0, 104.0, 100.0]) {
        recording.step_mark(number, at, at + length);
        launch(&mut recording, at);
        at += length;
    }
    let graph = recording.graph();
    assert_eq!((graph.coverage.steps_of_warm_up, graph.coverage.steps, graph.steps.len()), (2, 6, 4));
    assert_eq!(graph.steps.raw[0].number, 2);
}

#[test]
fn a_mark_without_work_is_no_step() {
    let mut recording = Recording::three_steps(launch);
    recording.step_mark(8, 1300.0, 1300.5);
    let graph = recording.graph();
    assert_eq!((graph.steps.len(), graph.samples.median_period()), (3, Some(us(100.0))));
}

#[test]
fn steps_whose_kernels_were_lost_are_left_out_and_counted() {
    let graph = Recording::steps(6, |recording, index, at| {
        recording.op("aten::mm", MAIN, at + 10.0, at + 50.0);
        recording.call("cudaLaunchKernel", at + 20.0, at + 25.0);
        if index >= 4 {
            recording.ran("kernel", "k", 7, at + 30.0, at + 60.0);
        }
    })
    .graph();
    let coverage = graph.coverage;
    assert_eq!((coverage.launches_in_steps, coverage.launches_lost), (6, 4));
    assert_eq!((coverage.steps, coverage.steps_incomplete, graph.steps.len()), (6, 4, 2));
    assert_eq!(graph.samples.median_active(), Some(us(30.0)));
}

#[test]
fn launches_into_a_captured_graph_have_no_kernel_to_lose() {
    let graph = Recording::three_steps(|recording, at| {
        launch(recording, at);
        recording.call("cudaStreamBeginCapture_v10000", at + 70.0, at + 71.0);
        recording.call("cudaLaunchKernel", at + 72.0, at + 73.0);
        recording.call("cudaStreamEndCapture", at + 74.0, at + 75.0);
    })
    .graph();
    assert_eq!(graph.coverage.launches_lost, 0);
}

#[test]
fn in_whole_microseconds_calls_follow_one_another() {
    // The attributes of a kernel are set in the microsecond of its launch, and either call may seem to be the longer one.
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::mm", MAIN, at + 10.0, at + 50.0);
        let long = if at as u32 == 1100 { 12.0 } else { 0.0 };
        recording.call("cudaFuncSetAttribute", at + 20.0, at + 20.0 + long);
        recording.kernel([at + 20.0, at + 25.0], 7, [at + 30.0, at + 60.0]);
    })
    .graph();
    assert_eq!(graph.coverage.steps_alike, 3);
    assert_eq!(
        graph.calls.iter().map(|call| call.kind).collect::<Vec<_>>(),
        [ApiKind::Other, ApiKind::Launch]
    );
    assert!(graph.samples.steps().all(|step| graph.samples.active(step) == us(30.0)));
}

#[test]
fn in_whole_microseconds_ops_nest_by_their_numbers() {
    let events = |from: u32| {
        [(1, "aten::linear", 0, 40), (2, "aten::t", 0, 0), (3, "aten::mm", 0, 40)].map(|(id, name, at, dur)| {
            format!(
                r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{},"dur":{dur},"args":{{"External id":{}}}}}"#,
                from + at,
                from + id,
            )
        })
    };
    let mark = |number: u32| {
        format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,"ts":{},"dur":100,"args":{{}}}}"#,
            number * 100
        )
    };
    let all: Vec<String> =
        (1..4).flat_map(|number| events(number * 100).into_iter().rev().chain([mark(number)])).collect();
    let json = format!(r#"{{"traceEvents": [{}]}}"#, all.join(","));
    let trace = steptime_trace::read_kineto(json.as_bytes()).expect("a well-formed trace");
    let graph =
        steptime_graph::StepGraph::build(&trace, &steptime_graph::Options::default()).expect("a graph");
    assert_eq!(ops(&graph), ["aten::linear", "aten::t", "aten::mm"]);
    let parents: Vec<_> = graph.ops.iter().map(|op| op.parent.map(usize::from)).collect();
    assert_eq!(parents, [None, Some(0), Some(0)]);
}

#[test]
fn without_correlations_the_external_id_links() {
    let mut events = Vec::new();
    for step in 0..4 {
        let at = 1000 + 100 * step;
        let id = 7 + step;
        let on_host =
            [("cpu_op", "aten::mm", 0, 40, 500 + step), ("hip_runtime", "hipLaunchKernel", 5, 10, id)];
        for (category, name, from, dur, id) in on_host {
            events.push(format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,"ts":{}.5,"dur":{dur},"args":{{"External id":{id}}}}}"#,
                at + from
            ));
        }
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":3,"ts":{}.5,"dur":50,"args":{{"External id":{id},"device":0,"stream":3}}}}"#,
            at + 20
        ));
    }
    let json = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    let trace = steptime_trace::read_kineto(json.as_bytes()).expect("a well-formed trace");
    let graph =
        steptime_graph::StepGraph::build(&trace, &steptime_graph::Options::default()).expect("a graph");
    assert_eq!((graph.coverage.activities, graph.coverage.activities_linked), (4, 4));
    assert_eq!(graph.step_source, StepSource::Whole);
    assert_eq!(graph.activities.len(), 4);
}

#[test]
fn kernels_that_begin_late_in_every_step_are_held_back_and_in_one_step_counted() {
    let late = |count: u32| {
        let mut recording = Recording::default();
        for step in 0..count {
            let at = 3000.0 * f64::from(step);
            recording.step_mark(step, at, at + 3000.0);
            recording.op("aten::mm", MAIN, at + 10.0, at + 50.0);
            recording.kernel([at + 20.0, at + 25.0], 7, [at + 1025.0, at + 1100.0]);
        }
        recording.graph()
    };
    let graph = late(4);
    assert_eq!((graph.held_back.raw.clone(), graph.coverage.late_starts), (vec![us(1000.0)], 0));
    let graph = late(1);
    assert_eq!((graph.held_back.raw.clone(), graph.coverage.late_starts), (vec![us(0.0)], 1));
    assert_eq!(graph.coverage.late, us(1000.0));
}

#[test]
fn kernels_that_no_step_launched_are_seen_by_the_witness() {
    let graph = Recording::three_steps(|recording, at| {
        launch(recording, at);
        // From a call that was not recorded.
        let mut stray = Recording::default();
        stray.ran("kernel", "stray", 9, at + 60.0, at + 95.0);
        recording.append(stray);
    })
    .graph();
    assert_eq!((graph.samples.median_active(), graph.witness.active), (Some(us(30.0)), us(65.0)));
}
