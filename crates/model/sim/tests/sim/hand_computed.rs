//! The simulator against timelines computed by hand. Times in microseconds.

use crate::support;

use steptime_cost::host::captured::Captured;
use steptime_cost::overheads::{Overhead, Overheads};
use steptime_graph::{ActivityId, Blocking, CallId, StepGraph, StreamDependency};
use steptime_sim::baseline::{PaperOp, algorithm_1};
use steptime_sim::critical::{Place, Slack, path};
use steptime_sim::{Idle, IdleCause, Timeline};
use steptime_trace::Nanos;
use support::{Step, priced};

fn us(time: f64) -> Nanos {
    Nanos::from_micros_f64(time)
}

fn simulate(graph: &StepGraph) -> Timeline {
    Timeline::simulate(&priced(graph))
}

#[test]
fn a_host_bound_step_lasts_as_long_as_the_host() {
    let graph =
        Step::default().op("aten::add", 10.0, 40.0).kernel([20.0, 25.0], 7, [27.0, 32.0]).recorded(100.0);
    let timeline = simulate(&graph);
    assert_eq!(timeline.period, us(100.0));
    // The first mark, the op's beginning, is at zero; the launch ends 15 later; the kernel needs 2 to start.
    assert_eq!((timeline.starts.raw[0], timeline.ends.raw[0]), (us(17.0), us(22.0)));
    assert_eq!((timeline.active(), timeline.idle()), (us(5.0), us(95.0)));
    let idle = Idle::measure(&graph, &timeline);
    assert_eq!(idle.get(IdleCause::Host), us(95.0));
}

#[test]
fn a_device_bound_step_lasts_as_long_as_the_device() {
    let graph =
        Step::default().op("aten::mm", 10.0, 40.0).kernel([20.0, 25.0], 7, [27.0, 177.0]).recorded(151.0);
    let mut priced = priced(&graph);
    // The host alone would need 60.
    priced.host.gaps.raw[0] = us(30.0);
    let timeline = Timeline::simulate(&priced);
    assert_eq!(timeline.period, us(151.0), "150 of the kernel and 1 between queued kernels");
    let idle = Idle::measure(&graph, &timeline);
    assert_eq!((idle.get(IdleCause::Queue), idle.get(IdleCause::Host)), (us(1.0), us(0.0)));
    let path = path(&graph, &timeline);
    assert!(path.iter().any(|s| s.place == Place::Device(ActivityId(0))));
    assert_eq!(path.iter().map(|s| s.to - s.from).sum::<Nanos>(), us(151.0));
}

#[test]
fn an_event_makes_one_stream_wait_for_the_other() {
    let graph = Step::default()
        .op("aten::conv", 0.0, 60.0)
        .kernel([10.0, 15.0], 7, [17.0, 67.0])
        .call("cudaEventRecord", 16.0, 17.0)
        .call("cudaStreamWaitEvent", 18.0, 19.0)
        .kernel([20.0, 25.0], 20, [68.0, 78.0])
        .kernel([30.0, 35.0], 7, [68.0, 69.0])
        .recorded(200.0);
    assert_eq!(graph.waits.len(), 1);
    assert!(graph.waits[0].inferred);
    let timeline = simulate(&graph);
    assert_eq!(timeline.starts.raw[0], us(17.0));
    assert_eq!(timeline.starts.raw[1], us(68.0), "the event holds it until 67, and 1 more");
    assert_eq!(timeline.ends.raw[1], us(78.0));
}

#[test]
fn a_copy_for_the_next_step_does_not_hold_this_one() {
    let mut graph = Step::default()
        .op("aten::copy_", 0.0, 60.0)
        .kernel([10.0, 15.0], 13, [17.0, 67.0])
        .kernel([20.0, 25.0], 7, [27.0, 37.0])
        .recorded(200.0);
    let [from, to] = [ActivityId(0), ActivityId(1)];
    graph.waits.push(StreamDependency { from, to, inferred: false, wraps: true });
    assert_eq!(simulate(&graph).starts.raw[1], us(27.0));
    // A copy longer than the step: the next step waits for it, and begins 1 after it.
    let mut priced = priced(&graph);
    priced.durations.raw[0] = us(300.0);
    let timeline = Timeline::simulate(&priced);
    assert_eq!(timeline.period, us(301.0));
}

#[test]
fn a_wait_that_the_device_contradicts_is_dropped() {
    let graph = Step::default()
        .op("aten::conv", 0.0, 60.0)
        .kernel([10.0, 15.0], 7, [17.0, 67.0])
        .call("cudaEventRecord", 16.0, 17.0)
        .call("cudaStreamWaitEvent", 18.0, 19.0)
        .kernel([20.0, 25.0], 20, [27.0, 37.0])
        .recorded(200.0);
    assert_eq!((graph.waits.len(), graph.coverage.waits_refuted), (0, 1));
    assert_eq!(simulate(&graph).starts.raw[1], us(27.0));
}

fn with_a_blocking_copy() -> Step {
    Step::default().op("aten::copy_", 0.0, 140.0).activity(
        "cudaMemcpyAsync",
        [20.0, 120.0],
        "gpu_memcpy",
        "Memcpy HtoD (Pageable -> Device)",
        7,
        [60.0, 115.0],
    )
}

#[test]
fn a_blocking_copy_holds_the_host_until_it_is_done() {
    let graph = with_a_blocking_copy().recorded(300.0);
    let Blocking::Chunked { lead, tail } = graph.calls.raw[0].blocking else {
        panic!("{:?}", graph.calls.raw[0])
    };
    assert_eq!((lead, tail), (Some(us(40.0)), us(-5.0)));
    let timeline = simulate(&graph);
    assert_eq!((timeline.starts.raw[0], timeline.ends.raw[0]), (us(60.0), us(115.0)));
    assert_eq!(timeline.marks[graph.calls.raw[0].end], us(120.0));
    assert_eq!(timeline.period, us(300.0));
}

#[test]
fn with_a_profile_the_lead_of_a_copy_is_the_profiles() {
    let graph = with_a_blocking_copy().recorded(300.0);
    let mut priced = priced(&graph);
    priced.host.recorded_delays = false;
    let timeline = Timeline::simulate(&priced);
    assert_eq!(timeline.starts.raw[0], us(20.0 + 85.0));
    assert_eq!(timeline.marks[graph.calls.raw[0].end], us(20.0 + 85.0 + 55.0 + 5.0));
}

#[test]
fn a_busy_device_delays_the_copy_and_with_it_the_host() {
    let graph = with_a_blocking_copy().kernel([130.0, 135.0], 7, [137.0, 138.0]).recorded(300.0);
    let mut priced = priced(&graph);
    priced.durations.raw[1] = us(400.0);
    let timeline = Timeline::simulate(&priced);
    // Copy 55, host back 5 later, launch 15 later, 2 to start, kernel 400, 1 to the next copy.
    assert_eq!(timeline.period, us(55.0 + 5.0 + 15.0 + 2.0 + 400.0 + 1.0));
}

#[test]
fn a_synchronisation_waits_for_its_stream() {
    let graph = Step::default()
        .op("aten::item", 0.0, 100.0)
        .kernel([10.0, 15.0], 7, [17.0, 77.0])
        .call("cudaStreamSynchronize", 20.0, 81.0)
        .recorded(200.0);
    let timeline = simulate(&graph);
    let sync = &graph.calls.raw[1];
    assert_eq!(timeline.marks[sync.end], us(81.0), "the kernel ends at 77, and 4 to return");
    assert_eq!(timeline.period, us(200.0));
    let path = path(&graph, &timeline);
    assert!(path.iter().any(|s| s.place == Place::Return(sync.end)));
    let slack = Slack::measure(&graph, &timeline);
    assert_eq!(slack.activities.raw[0], us(0.0));
}

#[test]
fn a_full_queue_holds_the_launching_host() {
    let mut step = Step::default().op("aten::many", 0.0, 90.0);
    for i in 0..4 {
        let at = 10.0 + 10.0 * f64::from(i);
        step = step.kernel([at, at + 5.0], 7, [20.0 + 50.0 * f64::from(i), 69.0 + 50.0 * f64::from(i)]);
    }
    let graph = step.recorded(300.0);
    let mut priced = priced(&graph);
    priced.host.gaps.raw[0] = us(0.0);
    priced.host.coupling.queue_depth = 2;
    let full = Timeline::simulate(&priced);
    let ends: Vec<Nanos> = graph.calls.iter().map(|c| full.marks[c.end]).collect();
    assert!(ends[3] >= full.ends.raw[1], "the fourth launch finds two in the queue until the second is done");
}

#[test]
fn what_a_launch_waits_for_a_full_queue_is_no_cost_of_the_host() {
    // Launches of 2, one every 5, into kernels of 50: after a thousand the queue is full, and a launch takes 47.
    let mut step = Step::default().op("aten::many", 0.0, 70_000.0);
    let mut at = 10.0;
    for i in 0..1250 {
        let full = i >= 1150;
        let took = if full { 47.0 } else { 2.0 };
        let runs = 20.0 + 51.0 * f64::from(i);
        step = step.kernel([at, at + took], 7, [runs, runs + 50.0]);
        at += took + 3.0;
    }
    let graph = step.recorded(70_000.0);
    let gaps = priced(&graph).host.gaps;
    let own = |call: u32| gaps[graph.calls[CallId(call)].end];
    assert_eq!((own(0), own(1240)), (us(2.0), us(2.0)));
}

#[test]
fn everything_twice_as_slow_takes_twice_as_long() {
    let graph = Step::default()
        .op("aten::mm", 10.0, 40.0)
        .kernel([20.0, 25.0], 7, [27.0, 90.0])
        .call("cudaStreamSynchronize", 30.0, 93.0)
        .recorded(120.0);
    let mut once = priced(&graph);
    for delay in [
        &mut once.host.coupling.launch_to_start_us,
        &mut once.host.coupling.queue_gap_us,
        &mut once.host.coupling.sync_own_us,
        &mut once.host.coupling.sync_return_us,
    ] {
        *delay = 0.0;
    }
    let mut twice = once.clone();
    twice.host.gaps.iter_mut().chain(&mut twice.durations).for_each(|t| *t = *t * 2);
    assert_eq!(Timeline::simulate(&twice).period, Timeline::simulate(&once).period * 2);
}

#[test]
fn algorithm_1_worked_by_hand() {
    // T1 = 5; a: T2 = 3, T3 = 2, T5 = 4; b launches nothing: T5 = 7.
    let overheads: Overheads = [
        (Overhead::T1, "between ops", 5.0),
        (Overhead::T2, "a", 3.0),
        (Overhead::T3, "a", 2.0),
        (Overhead::T5, "a", 4.0),
        (Overhead::T5, "b", 7.0),
    ]
    .map(|(kind, name, time)| (kind, name.to_owned(), us(time)))
    .into_iter()
    .collect();
    let ops = [
        PaperOp { name: "a".into(), kernels: vec![us(30.0), us(6.0)] },
        PaperOp { name: "b".into(), kernels: vec![] },
    ];
    // a: cpu 5 + 3 = 8; first kernel: gpu = max(0 + 1, 8 + 5) + 30 = 43, cpu 18, then T5: 22;
    // second: gpu = max(44, 27) + 6 = 50, cpu 32, then T3: 34. b: cpu 34 + 5 + 7 = 46. The step: max(46, 50).
    assert_eq!(algorithm_1(&ops, &overheads), us(50.0));
    assert_eq!(algorithm_1(&ops[1..], &overheads), us(12.0));
}

/// A graph of three nodes whose launch takes 40: the first begins in its middle, a buffer is cleared before the last.
fn captured() -> StepGraph {
    let mut step = Step::default().activity("cudaGraphLaunch", [10.0, 50.0], "kernel", "k", 7, [30.0, 40.0]);
    step = step.also(7, [40.3, 50.3]).cleared(7, [51.3, 52.3]).also(7, [56.3, 66.3]);
    step.recorded(200.0)
}

#[test]
fn a_graph_begins_while_its_launch_still_runs() {
    let graph = captured();
    let timeline = simulate(&graph);
    let launched = timeline.starts.raw[0] - timeline.marks[graph.calls.raw[0].begin];
    assert_eq!(launched, us(20.0));
    assert_eq!(timeline.period, us(200.0));
    let path = path(&graph, &timeline);
    assert_eq!(path.iter().map(|s| s.to - s.from).sum::<Nanos>(), us(200.0));
}

#[test]
fn what_the_profiler_adds_to_a_graph_is_taken_off() {
    let graph = captured();
    let mut priced = priced(&graph);
    let added = Captured {
        call_us: 10.0,
        node_us: 0.0,
        profiled_call_us: 20.0,
        profiled_node_us: 5.0,
        between_us: 0.2,
        clear_us: 0.5,
    };
    added.take_off(&graph, &mut priced.host.gaps, &mut priced.host.captured);
    let timeline = Timeline::simulate(&priced);
    let call = graph.calls.raw[0];
    // A quarter of the launch is left, and of the time after which the first node begins.
    assert_eq!(timeline.marks[call.end] - timeline.marks[call.begin], us(10.0));
    assert_eq!(timeline.starts.raw[0] - timeline.marks[call.begin], us(5.0));
    let between: Vec<Nanos> = (1..4).map(|at| timeline.starts.raw[at] - timeline.ends.raw[at - 1]).collect();
    assert_eq!(between, [us(0.2), us(0.5), us(0.5)]);
}
