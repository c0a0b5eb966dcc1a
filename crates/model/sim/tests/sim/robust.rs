//! Any input that the reader accepts gives a graph or an error, and a graph a timeline: no panic, no overflow, no hang.

use crate::support;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use steptime_cost::overheads::Overheads;
use steptime_cost::{
    Coupling, HostCosts, HostProfile, PricedGraph, Process, ProfilerCost, Training, fit_host,
};
use steptime_graph::{Options, StepGraph};
use steptime_sim::critical::{self, Slack};
use steptime_sim::{Idle, Timeline, baseline, breakdown, replay_recorded};
use support::Step;

/// A step with something of everything.
static SMALL: LazyLock<String> = LazyLock::new(|| {
    Step::default()
        .op("aten::to", 5.0, 60.0)
        .activity(
            "cudaMemcpyAsync",
            [10.0, 55.0],
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            7,
            [30.0, 53.0],
        )
        .op("aten::mm", 62.0, 100.0)
        .kernel([65.0, 70.0], 7, [72.0, 130.0])
        .call("cudaEventRecord", 72.0, 73.0)
        .call("cudaStreamWaitEvent", 74.0, 75.0)
        .kernel([80.0, 85.0], 20, [131.0, 140.0])
        .activity("cudaGraphLaunch", [88.0, 95.0], "kernel", "g", 7, [141.0, 150.0])
        .also(20, [151.0, 160.0])
        .backward("MmBackward0", 110.0, 140.0)
        .op("Optimizer.step#SGD.step", 150.0, 190.0)
        .activity("cudaMemsetAsync", [152.0, 155.0], "gpu_memset", "Memset (Device)", 7, [161.0, 162.0])
        .call("cudaEventSynchronize", 160.0, 166.0)
        .call("cudaStreamSynchronize", 170.0, 180.0)
        .call("cudaDeviceSynchronize", 182.0, 186.0)
        .json(250.0)
});

/// A profile that covers the step above.
static PROFILE: LazyLock<HostProfile> = LazyLock::new(|| {
    let trace = steptime_trace::read_kineto(SMALL.as_bytes()).expect("a well-formed trace");
    let graph = StepGraph::build(&trace, &Options::default()).expect("a graph");
    fit(&graph).expect("a profile")
});

fn fit(graph: &StepGraph) -> Result<HostProfile, steptime_cost::Error> {
    let training = Training {
        name: "small".into(),
        graph,
        excluded: false,
        home: true,
        probe: None,
        between: steptime_trace::Nanos::ZERO,
    };
    fit_host(&[training], &ProfilerCost::PROFILED, &ProfilerCost::FRESH)
}

/// Does all supported operations on a recording.
fn exercise(json: &[u8]) {
    exercise_with(json, &PROFILE);
}

fn exercise_with(json: &[u8], profile: &HostProfile) {
    let begin = Instant::now();
    let Ok(trace) = steptime_trace::read_kineto(json) else { return };
    let Ok(graph) = StepGraph::build(&trace, &Options::default()) else { return };
    let _ = graph.coverage.attributed_share() + graph.coverage.linked_share();
    for host in [
        HostCosts::from_own_samples(&graph, &ProfilerCost::PROFILED, &Coupling::default()),
        HostCosts::from_profile(&graph, profile, Process::Profiled),
        HostCosts::from_profile(&graph, profile, Process::Fresh),
    ] {
        let _ = host.slowness_of(&graph, &ProfilerCost::PROFILED);
        let priced = PricedGraph::measured(&graph, host);
        let timeline = Timeline::simulate(&priced);
        let _ = (
            timeline.active(),
            timeline.idle(),
            Idle::measure(&graph, &timeline),
            Slack::measure(&graph, &timeline),
        );
        let path = critical::path(&graph, &timeline);
        let _ = breakdown::by_op(&graph, &timeline, &path);
        let _ = breakdown::by_phase(&graph, &timeline);
        let _ = breakdown::by_annotation(&graph, &timeline);
        let _ = breakdown::by_kernel(&graph, &priced.durations);
        let _ = replay_recorded(&graph, &priced);
        let _ = baseline::kernel_sum(&priced.durations);
        for overheads in [Overheads::measured(&graph, &ProfilerCost::PROFILED), Overheads::published(&graph)]
        {
            let _ = baseline::paper(&graph, &priced.durations, &overheads);
        }
    }
    if let Ok(fitted) = fit(&graph) {
        let _ = HostProfile::parse(&fitted.to_text());
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "took {:?}", begin.elapsed());
}

/// Numbers that clocks, counters and bugs write.
const ODD: [&str; 16] = [
    "0",
    "-1",
    "0.001",
    "1000.0005",
    "1499.999",
    "-5.5",
    "9e15",
    "-9e15",
    "9000000000000000.123",
    "9223372036854775.807",
    "-9223372036854775.808",
    "4611686018427387.9",
    "-2305843009213693.952",
    "18446744073709551615",
    "1e-300",
    "null",
];

/// The places of numbers: after a colon and a blank.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let begins = text.match_indices(": ").map(|(at, _)| at + 2);
    begins
        .filter_map(|from| {
            let len = text[from..].find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-'))?;
            (len > 0).then_some(from..from + len)
        })
        .collect()
}

#[test]
fn the_small_recording_is_sound() {
    let trace = steptime_trace::read_kineto(SMALL.as_bytes()).expect("a well-formed trace");
    assert_eq!(trace.notes.repairs(), 0);
    let graph = StepGraph::build(&trace, &Options::default()).expect("a graph");
    // One wait by its event, three by the times: of activities that begin late, right after another.
    assert_eq!((graph.coverage.steps_alike, graph.coverage.hand_offs, graph.waits.len()), (3, 2, 4));
    assert!(numbers(&SMALL).len() > 200);
    exercise(SMALL.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cut_anywhere(cut in any::<Index>()) {
        exercise(&SMALL.as_bytes()[..cut.index(SMALL.len())]);
    }

    #[test]
    fn changed_anywhere(changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..12)) {
        let mut bytes = SMALL.clone().into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        exercise(&bytes);
    }

    #[test]
    fn digits_changed(changes in proptest::collection::vec((any::<Index>(), b'0'..=b'9'), 1..40)) {
        let mut bytes = SMALL.clone().into_bytes();
        let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
        for (place, digit) in changes {
            bytes[digits[place.index(digits.len())]] = digit;
        }
        exercise(&bytes);
    }

    #[test]
    fn odd_numbers(changes in proptest::collection::vec((any::<Index>(), 0..ODD.len()), 1..12)) {
        let mut text = SMALL.clone();
        for (place, odd) in changes {
            let places = numbers(&text);
            text.replace_range(places[place.index(places.len())].clone(), ODD[odd]);
        }
        exercise(text.as_bytes());
    }

    #[test]
    fn odd_times_everywhere(odd in 0..ODD.len(), field in prop::sample::select(vec!["\"ts\": ", "\"dur\": "]), skip in 0usize..9) {
        let mut text = SMALL.clone();
        for place in numbers(&SMALL).into_iter().rev().step_by(skip + 1) {
            if SMALL[..place.start].ends_with(field) {
                text.replace_range(place, ODD[odd]);
            }
        }
        exercise(text.as_bytes());
    }

    #[test]
    fn events_left_out_or_twice(kept in proptest::collection::vec(0usize..4, 90)) {
        let (head, rest) = SMALL.split_once('[').expect("events");
        let events: Vec<&str> = rest.trim_start_matches('{').trim_end_matches("}]}").split("},{").collect();
        let mut text = Vec::new();
        for (event, kept) in events.iter().zip(kept.iter().cycle()) {
            let times = match kept { 0 => 0, 3 => 2, _ => 1 };
            text.extend(std::iter::repeat_n(format!("{{{event}}}"), times));
        }
        exercise(format!("{head}[{}]}}", text.join(",")).as_bytes());
    }

    #[test]
    fn a_changed_profile(changes in proptest::collection::vec((any::<Index>(), 0..ODD.len()), 1..8)) {
        let mut text = PROFILE.to_text();
        for (place, odd) in changes {
            let places: Vec<_> = numbers_of_toml(&text);
            text.replace_range(places[place.index(places.len())].clone(), ODD[odd]);
        }
        if let Ok(profile) = HostProfile::parse(&text) {
            exercise_with(SMALL.as_bytes(), &profile);
        }
    }
}

/// The places of numbers in a profile: after `= `, or inside a row.
fn numbers_of_toml(text: &str) -> Vec<std::ops::Range<usize>> {
    let part = |c: char| c.is_ascii_digit() || c == '.';
    let begins = (1..text.len()).filter(|&at| {
        let (before, here) = (text.as_bytes()[at - 1], text.as_bytes()[at]);
        here.is_ascii_digit() && matches!(before, b' ' | b'[')
    });
    begins.map(|from| from..from + text[from..].find(|c| !part(c)).unwrap_or(text.len() - from)).collect()
}

#[test]
fn delays_that_no_machine_has() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e18, 1e18] {
        let mut profile = PROFILE.clone();
        let c = &mut profile.coupling;
        c.queue_depth = u32::MAX;
        for delay in [
            &mut c.launch_to_start_us,
            &mut c.queue_gap_us,
            &mut c.sync_own_us,
            &mut c.sync_return_us,
            &mut c.copy_lead_us,
        ] {
            *delay = odd;
        }
        exercise_with(SMALL.as_bytes(), &profile);
    }
}
