//! Dependencies between streams that the trace does not record.

use crate::recording::{MAIN, Recording, us};
use steptime_graph::{Clock, StepId};

/// Returns (from, to, wraps) of every dependency.
fn edges(graph: &steptime_graph::StepGraph) -> Vec<(u32, u32, bool)> {
    graph.waits.iter().map(|w| (w.from.0, w.to.0, w.wraps)).collect()
}

/// A on stream 7, B on 20 after it, C on 7 after that: 30 us each, queued behind the previous step.
fn three(recording: &mut Recording, at: f64, records: bool) {
    recording.op("aten::mm", MAIN, at, at + 60.0);
    for (i, stream) in [7, 20, 7].into_iter().enumerate() {
        let (launch, ran) = (at + 15.0 * i as f64, at + 200.0 + 30.0 * i as f64);
        recording.kernel([launch + 1.0, launch + 3.0], stream, [ran, ran + 30.0]);
        if i < 2 {
            if records {
                recording.call("cudaEventRecord", launch + 5.0, launch + 6.0);
            }
            recording.call("cudaStreamWaitEvent", launch + 8.0, launch + 9.0);
        }
    }
}

#[test]
fn waits_whose_events_are_not_recorded_get_the_edges_that_records_would_give() {
    let with = Recording::three_steps(|recording, at| three(recording, at, true)).graph();
    let without = Recording::three_steps(|recording, at| three(recording, at, false)).graph();
    assert_eq!(edges(&with), [(0, 1, false), (1, 2, false)]);
    assert_eq!(edges(&without), edges(&with));
    assert_eq!(without.coverage.waits_refuted, 0);
    // The waits are not also learned as delays.
    assert_eq!(without.queue_delays, with.queue_delays);
}

#[test]
fn kernels_of_a_captured_graph_are_ordered_with_the_stream_it_was_launched_into() {
    // The graph's kernel is reported on stream 158; one on stream 7 follows, and the next step's graph follows that.
    let graph = Recording::steps(5, |recording, _, at| {
        recording.op("aten::mm", MAIN, at, at + 40.0);
        recording.call("cudaGraphLaunch", at + 2.0, at + 8.0);
        recording.ran("kernel", "in_graph", 158, at + 300.0, at + 350.0);
        recording.kernel([at + 20.0, at + 25.0], 7, [at + 350.0, at + 400.0]);
    })
    .graph();
    assert_eq!(edges(&graph), [(1, 0, true), (0, 1, false)]);
    assert_eq!(graph.samples.active(StepId(2)), us(100.0));
}

#[test]
fn streams_that_happen_to_run_side_by_side_wait_for_nothing() {
    let graph = Recording::steps(6, |recording, index, at| {
        recording.op("aten::mm", MAIN, at, at + 60.0);
        let jitter = f64::from(index * 7 % 5);
        recording.kernel([at + 1.0, at + 3.0], 7, [at + 5.0, at + 20.0 + 4.0 * jitter]);
        recording.kernel([at + 10.0, at + 13.0], 20, [at + 15.0 + jitter / 4.0, at + 50.0]);
    })
    .graph();
    assert_eq!(edges(&graph), []);
}

#[test]
fn a_device_that_lags_is_the_clock() {
    // The host launches every 100 us; the device takes 130 us.
    let graph = Recording::steps(6, |recording, index, at| {
        recording.op("aten::mm", MAIN, at, at + 60.0);
        let from = 1010.0 + 130.0 * f64::from(index);
        recording.kernel([at + 1.0, at + 3.0], 7, [from, from + 129.0]);
    })
    .graph();
    assert_eq!(graph.samples.clock(), Clock::Device);
    assert_eq!(graph.samples.median_period(), Some(us(130.0)));
    assert_eq!(graph.samples.host_period(StepId(0)), Some(us(100.0)));
    let last = (graph.samples.period(StepId(5)), graph.samples.host_period(StepId(5)));
    assert_eq!(last, (None, Some(us(100.0))), "the device shows none of the last, its mark does");
}

#[test]
fn a_device_that_keeps_up_is_not_the_clock() {
    let graph = Recording::steps(6, |recording, _, at| {
        recording.op("aten::mm", MAIN, at, at + 60.0);
        recording.kernel([at + 1.0, at + 3.0], 7, [at + 5.0, at + 95.0]);
    })
    .graph();
    assert_eq!(graph.samples.clock(), Clock::Host);
    assert_eq!(graph.samples.median_period(), Some(us(100.0)));
}
