//! Which stream waits for which, through events.
//!
//! Kineto gives neither the stream nor the event of `cudaEventRecord` and `cudaStreamWaitEvent`. Where the
//! trace has `cuda_sync` records they say it; elsewhere it follows from the order of calls on a thread: a
//! wait refers to the last event recorded, and the streams are those of the launches around it. A pair that
//! the device's times contradict is dropped.

use rustc_hash::FxHashMap;
use steptime_trace::{SyncKind, Trace};

use crate::api::ApiKind;
use crate::graph::{Activity, Call, StreamDependency};
use crate::samples::Samples;

/// What was found: the dependencies, and how many waits were inferred and refuted.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub dependencies: Vec<StreamDependency>,
    pub waits: usize,
    pub inferred: usize,
    pub refuted: usize,
}

/// A stretch of event calls of one thread with no launch between.
#[derive(Default)]
struct Run {
    records: Vec<usize>,
    waits: Vec<usize>,
}

pub(crate) fn find(
    trace: &Trace,
    calls: &[Call],
    call_correlation: &[u64],
    activities: &[Activity],
    samples: &Samples,
) -> Found {
    let mut found = Found::default();
    let threads = calls.iter().map(|c| c.thread).max().map_or(0, |t| t + 1);
    let explicit = explicit_waits(trace);
    for thread in 0..threads {
        let own: Vec<usize> = (0..calls.len()).filter(|&c| calls[c].thread == thread).collect();
        one_thread(&own, calls, call_correlation, activities, samples, &explicit, &mut found);
    }
    found.dependencies.sort_by_key(|d| (d.to, d.from));
    found.dependencies.dedup_by_key(|d| (d.to, d.from));
    found
}

/// Correlation of a stream wait -> (stream that waits, correlation of the record it waits for).
fn explicit_waits(trace: &Trace) -> FxHashMap<u64, (Option<i64>, u64)> {
    let syncs = &trace.syncs;
    (0..syncs.len())
        .filter(|&i| syncs.kind[i] == SyncKind::StreamWaitEvent)
        .filter_map(|i| {
            let record = syncs.wait_on_event_record_correlation[i]?;
            Some((syncs.correlation[i], (syncs.stream[i], record)))
        })
        .collect()
}

fn one_thread(
    own: &[usize],
    calls: &[Call],
    correlation: &[u64],
    activities: &[Activity],
    samples: &Samples,
    explicit: &FxHashMap<u64, (Option<i64>, u64)>,
    found: &mut Found,
) {
    let mut last_launch: Option<usize> = None;
    let mut last_record: Option<Vec<u32>> = None;
    // Last activity of each stream so far, and what each record stood for.
    let mut tail: FxHashMap<u32, u32> = FxHashMap::default();
    let mut recorded: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut at = 0;
    while at < own.len() {
        let call = &calls[own[at]];
        match call.kind {
            ApiKind::EventRecord | ApiKind::StreamWait => {
                let end =
                    (at..own.len()).find(|&i| !calls[own[i]].activities().is_empty()).unwrap_or(own.len());
                let next = next_on_stream(&own[end..], calls, activities);
                let run = Run {
                    records: of_kind(&own[at..end], calls, ApiKind::EventRecord),
                    waits: of_kind(&own[at..end], calls, ApiKind::StreamWait),
                };
                let before = last_launch.map(|c| activities[calls[c].activities().end - 1].stream);
                let after = own.get(end).map(|&c| activities[calls[c].activities().start].stream);
                found.waits += run.waits.len();
                let sources = sources_of(&run, before, after, &tail);
                for (i, &record) in run.records.iter().enumerate() {
                    let one = if run.records.len() > 1 {
                        sources.get(i).map_or_else(Vec::new, |&s| vec![s])
                    } else {
                        sources.clone()
                    };
                    recorded.insert(correlation[record], one);
                }
                if !run.records.is_empty() {
                    last_record = Some(sources);
                }
                let from = last_record.clone().unwrap_or_default();
                connect(&run, &from, before, after, &next, &recorded, explicit, correlation, samples, found);
                at = end;
            }
            _ => {
                for activity in call.activities() {
                    tail.insert(activities[activity].stream, activity as u32);
                    last_launch = Some(own[at]);
                }
                at += 1;
            }
        }
    }
}

fn of_kind(own: &[usize], calls: &[Call], kind: ApiKind) -> Vec<usize> {
    own.iter().copied().filter(|&c| calls[c].kind == kind).collect()
}

/// The first activity that each stream gets from the calls ahead.
fn next_on_stream(own: &[usize], calls: &[Call], activities: &[Activity]) -> Vec<(u32, u32)> {
    let mut next: Vec<(u32, u32)> = Vec::new();
    for &call in own.iter().take(4096) {
        for activity in calls[call].activities() {
            let stream = activities[activity].stream;
            if !next.iter().any(|&(s, _)| s == stream) {
                next.push((stream, activity as u32));
            }
        }
    }
    next
}

/// The activities that the records of a run stand for: one record marks the stream launched in last; several
/// collect the other streams for the one that goes on.
fn sources_of(run: &Run, before: Option<u32>, after: Option<u32>, tail: &FxHashMap<u32, u32>) -> Vec<u32> {
    let mut sources: Vec<u32> = if run.records.len() > 1 {
        tail.iter().filter(|&(&s, _)| Some(s) != after).map(|(_, &a)| a).collect()
    } else {
        before.and_then(|s| tail.get(&s).copied()).into_iter().collect()
    };
    sources.sort_unstable();
    sources
}

#[expect(clippy::too_many_arguments, reason = "the state of one pass over a thread")]
fn connect(
    run: &Run,
    from: &[u32],
    before: Option<u32>,
    after: Option<u32>,
    next: &[(u32, u32)],
    recorded: &FxHashMap<u64, Vec<u32>>,
    explicit: &FxHashMap<u64, (Option<i64>, u64)>,
    correlation: &[u64],
    samples: &Samples,
    found: &mut Found,
) {
    let next_of = |stream: u32| next.iter().find(|&&(s, _)| s == stream).map(|&(_, a)| a);
    let mut inferred_waits = 0;
    for &wait in &run.waits {
        if let Some((stream, record)) = explicit.get(&correlation[wait]) {
            let target = stream.and_then(|s| next.iter().find(|&&(id, _)| i64::from(id) == s));
            if let (Some(&(_, to)), Some(sources)) = (target, recorded.get(record)) {
                for &source in sources {
                    found.dependencies.push(StreamDependency { from: source, to, inferred: false });
                }
            }
        } else {
            inferred_waits += 1;
        }
    }
    if inferred_waits == 0 {
        return;
    }
    found.inferred += inferred_waits;
    let fans_out = run.records.len() == 1 && (inferred_waits > 1 || before == after);
    let targets: Vec<u32> = if fans_out {
        next.iter().filter(|&&(s, _)| Some(s) != before).map(|&(_, a)| a).collect()
    } else {
        after.and_then(next_of).into_iter().collect()
    };
    for &to in &targets {
        for &source in from {
            if source >= to {
                continue;
            }
            if holds(samples, source, to) {
                found.dependencies.push(StreamDependency { from: source, to, inferred: true });
            } else {
                found.refuted += 1;
            }
        }
    }
}

/// Whether `to` began after `from` had ended in at least nine of ten steps.
fn holds(samples: &Samples, from: u32, to: u32) -> bool {
    let (mut yes, mut all) = (0, 0);
    for step in 0..samples.steps() {
        if let (Some(end), Some(start)) = (samples.activity_end(step, from), samples.activity_start(step, to))
        {
            all += 1;
            yes += usize::from(start >= end);
        }
    }
    all > 0 && yes * 10 >= all * 9
}
