//! Recordings for fits.

use std::path::Path;

use steptime_cost::{HostProfile, ProfilerCost, Training, fit_host};
use steptime_graph::{Options, StepGraph};
use steptime_trace::{Nanos, Trace};

/// The timing trace of an example.
pub fn example(name: &str) -> Trace {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name).join("kineto.json.gz");
    steptime_trace::read_kineto_file(&path).expect("an example")
}

pub fn graph(trace: &Trace) -> StepGraph {
    StepGraph::build(trace, &Options::default()).expect("a graph")
}

/// A small recording of two equal steps, without a device.
pub fn small() -> StepGraph {
    let mut events = Vec::new();
    for step in 0..2 {
        let at = |time: i32| 1000 + 100 * step + time;
        let (begin, add, mul) = (at(0), at(10), at(40));
        events.push(format!(
            r#"{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": {begin}, "dur": 100}},
            {{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": {add}, "dur": 20}},
            {{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": {mul}, "dur": 30}}"#
        ));
    }
    let json = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    graph(&steptime_trace::read_kineto(json.as_bytes()).expect("a well-formed trace"))
}

/// The same recording on a machine on which everything takes `times` as long.
pub fn slower(mut trace: Trace, times: i64) -> Trace {
    let zero = trace.ops.start.iter().copied().min().unwrap_or(Nanos::ZERO);
    let starts = trace.ops.start.iter_mut().chain(&mut trace.calls.start);
    for start in starts.chain(&mut trace.activities.start) {
        *start = zero + (*start - zero) * times;
    }
    let durs = trace.ops.dur.iter_mut().chain(&mut trace.calls.dur);
    for dur in durs.chain(&mut trace.activities.dur) {
        *dur = *dur * times;
    }
    trace
}

/// Fits recordings as they are, with nothing subtracted for the profiler.
pub fn fit(recordings: &[(&str, &StepGraph)]) -> HostProfile {
    let training: Vec<Training<'_>> = recordings
        .iter()
        .map(|&(name, graph)| Training {
            name: name.into(),
            graph,
            excluded: false,
            home: true,
            probe: None,
            between: Nanos::ZERO,
        })
        .collect();
    fit_host(&training, &ProfilerCost::NONE, &ProfilerCost::NONE).expect("a profile")
}
