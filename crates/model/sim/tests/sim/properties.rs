//! Properties of any step: checked on random small ones.

use crate::support;

use proptest::prelude::*;
use steptime_cost::PricedGraph;
use steptime_graph::{MarkId, StepGraph, StreamId, TiVec};
use steptime_sim::critical::{self, Slack};
use steptime_sim::{Idle, IdleCause, Timeline, breakdown};
use steptime_trace::Nanos;
use support::{Step, priced};

/// An action of the host; times in microseconds.
#[derive(Debug, Clone)]
enum Act {
    /// Launches a kernel of this length into one of two streams.
    Kernel { second: bool, runs: u32 },
    /// Launches a graph of one kernel on each stream.
    Graph { runs: u32 },
    /// A copy that the host only stages, or waits for.
    Copy { blocks: bool, runs: u32 },
    /// Lets one stream wait for the other.
    Event { second: bool },
    /// Waits for the stream launched into last, or for the device.
    Sync { device: bool },
    /// A call that does not touch a device.
    Query,
    /// The backward thread takes over.
    Backward { runs: u32 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (any::<bool>(), 1u32..80).prop_map(|(second, runs)| Act::Kernel { second, runs }),
        1 => (1u32..80).prop_map(|runs| Act::Graph { runs }),
        1 => (any::<bool>(), 1u32..40).prop_map(|(blocks, runs)| Act::Copy { blocks, runs }),
        1 => any::<bool>().prop_map(|second| Act::Event { second }),
        1 => any::<bool>().prop_map(|device| Act::Sync { device }),
        1 => Just(Act::Query),
        1 => (1u32..30).prop_map(|runs| Act::Backward { runs }),
    ]
}

/// A recording of a program: acts, each after some host time, and some more between steps.
#[derive(Debug, Clone)]
struct Program {
    acts: Vec<(u32, Act)>,
    between: u32,
}

fn program() -> impl Strategy<Value = Program> {
    (proptest::collection::vec((1u32..20, act()), 1..14), 1u32..60)
        .prop_map(|(acts, between)| Program { acts, between })
}

impl Program {
    fn graph(&self) -> StepGraph {
        let mut step = Step::default();
        let (mut now, mut free) = (1.0, [0.0f64; 2]);
        let mut last = 0;
        // Time at which a stream may continue, and its busy time from then on.
        let run = |free: &mut [f64; 2], on: usize, ready: f64, runs: u32| {
            let from = ready.max(free[on] + 1.0);
            free[on] = from + f64::from(runs);
            [from, free[on]]
        };
        for (before, act) in &self.acts {
            let begin = now;
            now += f64::from(*before);
            match *act {
                Act::Kernel { second, runs } => {
                    last = usize::from(second);
                    let ran = run(&mut free, last, now + 5.0, runs);
                    step = step.kernel([now, now + 3.0], [7, 20][last], ran);
                    now += 3.0;
                }
                Act::Graph { runs } => {
                    let first = run(&mut free, 0, now + 8.0, runs);
                    let second = run(&mut free, 1, now + 8.0, runs);
                    step = step.activity("cudaGraphLaunch", [now, now + 6.0], "kernel", "g", 7, first);
                    step = step.also(20, second);
                    (now, last) = (now + 6.0, 1);
                }
                Act::Copy { blocks, runs } => {
                    let ran = run(&mut free, 0, now + 4.0, runs);
                    let back = if blocks { ran[1] + 2.0 } else { now + 2.0 };
                    let name = "Memcpy HtoD (Pageable -> Device)";
                    step = step.activity("cudaMemcpyAsync", [now, back], "gpu_memcpy", name, 7, ran);
                    (now, last) = (back, 0);
                }
                Act::Event { second } => {
                    let (from, to) = (last, usize::from(second));
                    free[to] = free[to].max(free[from]);
                    step = step.call("cudaEventRecord", now, now + 1.0);
                    step = step.call("cudaStreamWaitEvent", now + 2.0, now + 3.0);
                    now += 3.0;
                }
                Act::Sync { device } => {
                    let done = if device { free[0].max(free[1]) } else { free[last] };
                    let back = (done + 4.0).max(now + 3.0);
                    let api = if device { "cudaDeviceSynchronize" } else { "cudaStreamSynchronize" };
                    step = step.call(api, now, back);
                    now = back;
                }
                Act::Query => {
                    step = step.call("cudaPeekAtLastError", now, now + 0.5);
                    now += 0.5;
                }
                Act::Backward { runs } => {
                    let end = now + f64::from(runs);
                    step = step.backward("MmBackward0", now, end);
                    now = end + 5.0;
                }
            }
            now += 1.0;
            step = step.op("aten::op", begin, now);
            now += 0.5;
        }
        step.recorded((now + f64::from(self.between)).ceil())
    }
}

fn check(graph: &StepGraph, timeline: &Timeline) -> Result<(), TestCaseError> {
    let host = timeline.marks.iter().max().copied();
    let end = host.max(timeline.ends.iter().max().copied()).unwrap_or(Nanos::ZERO);
    for thread in &graph.threads {
        let marks = &timeline.marks[thread.first_mark..thread.end_mark];
        prop_assert!(marks.raw.is_sorted(), "time goes forward on a thread");
    }
    for (a, activity) in graph.activities.iter_enumerated() {
        let call = &graph.calls[activity.call];
        prop_assert!(timeline.starts[a] <= timeline.ends[a]);
        prop_assert!(timeline.starts[a] >= timeline.marks[call.begin], "not before it is launched");
    }
    for wait in &graph.waits {
        // An event of the step before ended a period earlier.
        let from = timeline.ends[wait.from] - if wait.wraps { timeline.period } else { Nanos::ZERO };
        prop_assert!(timeline.starts[wait.to] >= from);
    }

    prop_assert!(timeline.period > Nanos::ZERO);
    let path = critical::path(graph, timeline);
    prop_assert_eq!(path.last().map(|s| s.to), Some(end));
    for pair in path.windows(2) {
        prop_assert_eq!(pair[0].to, pair[1].from, "stretches join: {:?}", pair);
    }
    prop_assert_eq!(path.iter().map(|s| s.to - s.from).sum::<Nanos>(), timeline.period);

    let idle = Idle::measure(graph, timeline);
    let parts: Nanos = idle.iter().map(|(_, part)| part).sum();
    // If one stream still works on the step before while another has begun this one, the union of a step's
    // own activities is not the device's active time.
    let first = timeline.starts.iter().min().copied().unwrap_or(Nanos::ZERO);
    let last = timeline.ends.iter().max().copied().unwrap_or(Nanos::ZERO);
    if first >= last - timeline.period {
        let off = (parts - timeline.idle()).0.abs();
        prop_assert!(off <= IdleCause::ALL.len() as i64, "{parts} of {}: {idle:?}", timeline.idle());
    }
    prop_assert!(parts <= timeline.period);
    prop_assert!(idle.iter().all(|(_, part)| part >= Nanos::ZERO), "{idle:?}");

    let slack = Slack::measure(graph, timeline);
    prop_assert!(slack.marks.iter().chain(&slack.activities).all(|&s| s >= Nanos::ZERO && s <= end));

    let costs = breakdown::by_op(graph, timeline, &path);
    let critical: Nanos = costs.iter().map(|cost| cost.critical).sum();
    prop_assert!(critical <= timeline.period);
    Ok(())
}

/// Whether no stream falls further behind from step to step: the period is then the true one.
fn steady(priced: &PricedGraph<'_>, timeline: &Timeline) -> bool {
    let mut work: TiVec<StreamId, Nanos> = vec![Nanos::ZERO; priced.graph.streams.len()].into();
    let usual = Nanos::from_micros_f64(support::DELAYS.queue_gap_us);
    let delays = priced.graph.queue_delays.iter().map(|delay| delay.unwrap_or(usual));
    for ((activity, &duration), delay) in priced.graph.activities.iter().zip(&priced.durations).zip(delays) {
        work[activity.stream] += duration + delay;
    }
    work.into_iter().all(|work| work <= timeline.period)
}

fn same(a: &Timeline, b: &Timeline) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_make_up_the_step(program in program()) {
        let graph = program.graph();
        prop_assert_eq!(graph.coverage.steps_alike, 3);
        let priced = priced(&graph);
        let timeline = Timeline::simulate(&priced);
        check(&graph, &timeline)?;
        prop_assert!(same(&timeline, &Timeline::simulate(&priced)), "the same twice");
    }

    #[test]
    fn a_longer_gap_never_shortens_the_period(program in program(), at in any::<prop::sample::Index>(), more in 1i64..200_000) {
        let graph = program.graph();
        let mut priced = priced(&graph);
        let first = Timeline::simulate(&priced);
        let (before, was_steady) = (first.period, steady(&priced, &first));
        let at = at.index(priced.host.gaps.len());
        priced.host.gaps.raw[at] += Nanos(more);
        let after = Timeline::simulate(&priced);
        check(&graph, &after)?;
        prop_assume!(was_steady && steady(&priced, &after));
        // A period counts as settled within one part in two thousand.
        prop_assert!(after.period + before / 1000 + Nanos(2) >= before, "{before} became {}", after.period);
        prop_assert!(after.period <= before + Nanos(more) + before / 1000 + Nanos(2));
    }

    #[test]
    fn a_longer_kernel_never_shortens_the_period(program in program(), at in any::<prop::sample::Index>(), more in 1i64..200_000) {
        let graph = program.graph();
        prop_assume!(!graph.activities.is_empty());
        let mut priced: PricedGraph<'_> = priced(&graph);
        let first = Timeline::simulate(&priced);
        let (before, was_steady) = (first.period, steady(&priced, &first));
        let at = at.index(priced.durations.len());
        priced.durations.raw[at] += Nanos(more);
        let after = Timeline::simulate(&priced);
        prop_assume!(was_steady && steady(&priced, &after));
        prop_assert!(after.period + before / 1000 + Nanos(2) >= before, "{before} became {}", after.period);
    }
}

/// A host that needs 121 and a stream that needs 135, hidden at first behind the other stream's late end.
fn a_stream_that_falls_behind() -> (StepGraph, TiVec<MarkId, Nanos>) {
    let kernel = |second, runs| Act::Kernel { second, runs };
    let acts = vec![
        (2, kernel(true, 1)),
        (4, kernel(false, 55)),
        (1, Act::Copy { blocks: false, runs: 32 }),
        (1, kernel(true, 50)),
        (5, kernel(false, 45)),
        (1, kernel(true, 62)),
    ];
    let graph = Program { acts, between: 32 }.graph();
    let mut gaps = priced(&graph).host.gaps;
    gaps.raw[7] += Nanos(48_235);
    (graph, gaps)
}

#[test]
fn the_slowest_stream_decides_the_period() {
    let (graph, gaps) = a_stream_that_falls_behind();
    let mut priced = priced(&graph);
    priced.host.gaps = gaps;
    let timeline = Timeline::simulate(&priced);
    assert!(steady(&priced, &timeline), "{} ns in {} steps", timeline.period.0, timeline.steps);
}

#[test]
fn active_time_is_never_longer_than_the_period() {
    let kernel = |second, runs| Act::Kernel { second, runs };
    let graph = Program { acts: vec![(1, kernel(false, 60)), (1, kernel(true, 60))], between: 1 }.graph();
    let timeline = Timeline::simulate(&priced(&graph));
    assert!(timeline.active() <= timeline.period, "{} of {}", timeline.active(), timeline.period);
}
