//! Launches, copies and waits.

use steptime_graph::{ActivityId, ApiKind, Blocking, CallId, StepGraph, StepId, StreamId, StreamSet};
use steptime_trace::ActivityKind;

use crate::recording::{MAIN, Recording, us};

/// Returns the wait of the last call of each step, after a kernel on stream 20 and one on stream 7.
fn wait(step: impl Fn(&mut Recording, f64)) -> (StepGraph, Blocking) {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::mm", MAIN, at, at + 95.0);
        recording.kernel([at + 5.0, at + 8.0], 20, [at + 10.0, at + 30.0]);
        recording.kernel([at + 10.0, at + 13.0], 7, [at + 15.0, at + 60.0]);
        step(recording, at);
    })
    .graph();
    let last = graph.calls.last().expect("a call").blocking;
    (graph, last)
}

fn stream(graph: &StepGraph, number: i64) -> StreamId {
    graph.streams.iter().position(|s| s.stream == number).expect("a stream of the trace").into()
}

#[test]
fn a_device_synchronisation_waits_for_all_streams() {
    for api in ["cudaDeviceSynchronize", "hipDeviceSynchronize", "cudaFree"] {
        let (graph, last) = wait(|recording, at| recording.call(api, at + 20.0, at + 65.0));
        assert_eq!(last, Blocking::Streams(StreamSet::All), "{api}");
        assert!(graph.calls.raw[2].kind.synchronises());
    }
}

#[test]
fn a_stream_synchronisation_waits_for_the_stream_launched_into_last() {
    let (graph, last) = wait(|recording, at| recording.call("cudaStreamSynchronize", at + 20.0, at + 65.0));
    assert_eq!(last, Blocking::Streams(StreamSet::One(stream(&graph, 7))));
}

#[test]
fn a_synchronisation_record_says_which_stream_it_is() {
    let (graph, last) = wait(|recording, at| {
        recording.call("cudaStreamSynchronize", at + 20.0, at + 35.0);
        recording.stream_sync(20, at + 20.0, at + 34.0);
    });
    assert_eq!(last, Blocking::Streams(StreamSet::One(stream(&graph, 20))));
}

#[test]
fn a_synchronisation_before_any_launch_waits_for_all() {
    let graph =
        Recording::three_steps(|recording, at| recording.call("cudaStreamSynchronize", at + 20.0, at + 65.0))
            .graph();
    assert_eq!(graph.calls.raw[0].blocking, Blocking::Streams(StreamSet::All));
    assert_eq!(graph.calls.raw[0].op, None);
}

#[test]
fn an_event_synchronisation_waits_for_what_the_event_marks() {
    let (_, last) = wait(|recording, at| {
        recording.call("cudaEventRecord", at + 15.0, at + 16.0);
        recording.kernel([at + 20.0, at + 22.0], 7, [at + 62.0, at + 90.0]);
        recording.call("cudaEventSynchronize", at + 25.0, at + 65.0);
    });
    assert_eq!(last, Blocking::Activity(ActivityId(1)), "the kernel before the event, not the one after");
    let (_, last) = wait(|recording, at| recording.call("cudaEventSynchronize", at + 25.0, at + 26.0));
    assert_eq!(last, Blocking::Never, "no event was recorded");
}

#[test]
fn a_copy_that_returns_before_the_device_begins_is_staged() {
    let (graph, last) = wait(|recording, at| recording.copy([at + 62.0, at + 66.0], [at + 68.0, at + 70.0]));
    assert_eq!((graph.calls.raw[2].kind, last), (ApiKind::Copy, Blocking::Never));
}

#[test]
fn a_copy_that_the_device_begins_before_it_returns_is_chunked() {
    let (_, last) = wait(|recording, at| recording.copy([at + 65.0, at + 80.0], [at + 75.0, at + 82.0]));
    let lead = Some(us(10.0));
    assert_eq!(last, Blocking::Chunked { lead, tail: us(2.0) });
    // The stream is busy until 60 when the call begins at 50.
    let (_, last) = wait(|recording, at| recording.copy([at + 50.0, at + 80.0], [at + 62.0, at + 79.0]));
    assert_eq!(last, Blocking::Chunked { lead: None, tail: us(-1.0) });
}

#[test]
fn a_launch_whose_kernel_begins_early_is_no_blocking_call() {
    let graph =
        Recording::three_steps(|recording, at| recording.kernel([at, at + 20.0], 7, [at + 5.0, at + 6.0]))
            .graph();
    assert_eq!(graph.calls.raw[0].blocking, Blocking::Never);
}

#[test]
fn a_graph_launch_has_many_activities_under_one_correlation() {
    let graph = Recording::three_steps(|recording, at| {
        recording.call("cudaGraphLaunch", at + 5.0, at + 15.0);
        // Not in the order in which they ran.
        recording.ran("kernel", "second", 7, at + 30.0, at + 40.0);
        recording.ran("kernel", "first", 7, at + 20.0, at + 29.0);
        recording.ran("gpu_memset", "Memset (Device)", 13, at + 32.0, at + 33.0);
    })
    .graph();
    let call = &graph.calls.raw[0];
    assert_eq!(
        (call.kind, call.activities().len(), call.blocking),
        (ApiKind::GraphLaunch, 3, Blocking::Never)
    );
    let names: Vec<&str> = graph.activities.iter().map(|a| graph.names.get(a.name)).collect();
    assert_eq!(names, ["first", "second", "Memset (Device)"]);
    assert!(graph.activities.iter().all(|a| a.call == CallId(0)));
    assert_eq!(graph.activities.raw[2].stream, stream(&graph, 13));
    for step in graph.samples.steps() {
        assert_eq!(graph.samples.activity_duration(step, ActivityId(1)), Some(us(10.0)));
        assert_eq!(graph.samples.active(step), us(19.0));
    }
    assert_eq!((graph.coverage.activities, graph.coverage.activities_linked), (9, 9));
    assert_eq!(graph.coverage.activities_in_steps, 9);
}

#[test]
fn an_activity_tied_to_an_event_call_is_its_launch() {
    let (graph, _) = wait(|recording, at| {
        recording.call("cudaEventRecord", at + 15.0, at + 16.0);
        recording.call("cudaStreamWaitEvent", at + 17.0, at + 18.0);
        recording.ran("kernel", "k", 20, at + 61.0, at + 70.0);
    });
    // It begins right after the kernel of stream 7, long after its own launch: it waited for that kernel.
    assert_eq!((graph.activities.len(), graph.waits.len()), (3, 1));
    assert_eq!(
        (graph.waits[0].from, graph.waits[0].to, graph.waits[0].wraps),
        (ActivityId(1), ActivityId(2), false)
    );
}

#[test]
fn amd_names_mean_the_same() {
    let graph = Recording::three_steps(|recording, at| {
        recording.op("aten::to", MAIN, at + 1.0, at + 20.0);
        recording.call("hipMemcpyWithStream", at + 2.0, at + 18.0);
        recording.ran("gpu_memcpy", "CopyHostToDevice", 0, at + 10.0, at + 17.0);
        recording.op("aten::mm", MAIN, at + 21.0, at + 40.0);
        recording.call("hipExtModuleLaunchKernel", at + 22.0, at + 24.0);
        recording.ran("kernel", "Cijk_Ailk_Bljk", 0, at + 26.0, at + 36.0);
        recording.call("hipStreamSynchronize", at + 25.0, at + 38.0);
    })
    .graph();
    let kinds: Vec<ApiKind> = graph.calls.iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [ApiKind::BlockingCopy, ApiKind::Launch, ApiKind::StreamSync]);
    assert_eq!(graph.calls.raw[0].blocking, Blocking::Chunked { lead: Some(us(8.0)), tail: us(-1.0) });
    assert_eq!(graph.calls.raw[2].blocking, Blocking::Streams(StreamSet::One(StreamId(0))));
    assert_eq!(graph.ops.raw[0].phase, steptime_graph::Phase::Input);
    assert_eq!(graph.activities.raw[0].kind, ActivityKind::Memcpy);
}

#[test]
fn what_was_launched_before_the_window_is_counted_apart() {
    let mut recording = Recording::three_steps(|recording, at| {
        recording.kernel([at + 5.0, at + 10.0], 7, [at + 30.0, at + 40.0]);
    });
    // Launched before the first step, run within it.
    recording.kernel([990.0, 995.0], 7, [1002.0, 1020.0]);
    let graph = recording.graph();
    let coverage = graph.coverage;
    assert_eq!((coverage.activities, coverage.activities_linked), (4, 4));
    assert_eq!((coverage.activities_in_steps, coverage.activities_before_steps), (3, 1));
    assert_eq!(graph.activities.len(), 1);
    assert_eq!(graph.samples.active(StepId(0)), us(10.0));
}

#[test]
fn an_activity_without_its_call_is_not_linked() {
    let mut recording = Recording::three_steps(|recording, at| {
        recording.kernel([at + 5.0, at + 10.0], 7, [at + 30.0, at + 40.0])
    });
    let mut lone = Recording::default();
    lone.ran("kernel", "k", 7, 1060.0, 1070.0); // correlation 0: none
    recording.append(lone);
    let coverage = recording.graph().coverage;
    assert_eq!((coverage.activities, coverage.activities_linked), (4, 3));
    assert!((coverage.linked_share() - 0.75).abs() < 1e-9);
}
