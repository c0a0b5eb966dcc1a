//! Delays between host and device: constants of the driver and the bus.

use serde::{Deserialize, Serialize};
use steptime_graph::{ApiKind, Blocking, StepGraph, StreamId, StreamSet, TiVec, median};
use steptime_trace::Nanos;

/// Delays between host and device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coupling {
    /// Delay from the end of a launching call to the start of its kernel on an idle stream, microseconds.
    pub launch_to_start_us: f64,
    /// Gap between two queued activities of a stream, microseconds.
    pub queue_gap_us: f64,
    /// Duration of a synchronising call that has nothing to wait for, microseconds.
    pub sync_own_us: f64,
    /// Delay from the end of the device's work to the return of the call that waits for it, microseconds.
    pub sync_return_us: f64,
    /// Delay from the beginning of a chunked pageable copy's call to its start on an idle device, microseconds.
    pub copy_lead_us: f64,
    /// Number of launches that a stream can hold before the host has to wait.
    pub queue_depth: u32,
}

impl Default for Coupling {
    /// Measured values of one H200 host.
    fn default() -> Self {
        Coupling {
            launch_to_start_us: 2.2,
            queue_gap_us: 1.1,
            sync_own_us: 3.0,
            sync_return_us: 2.9,
            copy_lead_us: 85.0,
            queue_depth: 1024,
        }
    }
}

/// Least margin for a stream to count as idle, or as queued.
const CLEARLY: Nanos = Nanos(10_000);
/// Least number of observations.
const ENOUGH: usize = 5;

impl Coupling {
    /// Returns its fields by name, without the depth of the queue.
    pub(crate) fn numbers(&self) -> [(&'static str, f64); 5] {
        [
            ("launch_to_start_us", self.launch_to_start_us),
            ("queue_gap_us", self.queue_gap_us),
            ("sync_own_us", self.sync_own_us),
            ("sync_return_us", self.sync_return_us),
            ("copy_lead_us", self.copy_lead_us),
        ]
    }

    /// Measures the delays in a graph's samples. Delays with too few samples keep their value in `fallback`.
    pub fn measure(graph: &StepGraph, fallback: &Coupling) -> Coupling {
        let (mut idle, mut queued) = (Vec::new(), Vec::new());
        let (mut own, mut back) = (Vec::new(), Vec::new());
        let samples = &graph.samples;
        let calls = graph.calls_by_time();
        for step in samples.steps() {
            let mut stream_end: TiVec<StreamId, Option<Nanos>> = vec![None; graph.streams.len()].into();
            for call in calls.iter().map(|&c| &graph.calls[c]) {
                let (Some(begin), Some(end)) = (samples.mark(step, call.begin), samples.mark(step, call.end))
                else {
                    continue;
                };
                // Freeing memory has work of its own: it does not show the wait.
                if let (Blocking::Streams(set), true) = (call.blocking, call.kind != ApiKind::Free) {
                    let latest = match set {
                        StreamSet::All => stream_end.iter().flatten().max().copied(),
                        StreamSet::One(stream) => stream_end[stream],
                    };
                    match latest {
                        Some(done) if done > begin + CLEARLY => back.push(end - done),
                        Some(done) if done < begin - CLEARLY => own.push(end - begin),
                        _ => {}
                    }
                }
                for activity in call.activities() {
                    let stream = graph.activities[activity].stream;
                    let (Some(start), Some(stop)) =
                        (samples.activity_start(step, activity), samples.activity_end(step, activity))
                    else {
                        continue;
                    };
                    let plain = call.activities().len() == 1
                        && call.kind == ApiKind::Launch
                        && call.blocking == Blocking::Never;
                    match stream_end[stream] {
                        Some(before) if plain && before + CLEARLY < end => idle.push(start - end),
                        Some(before) if plain && before > end + CLEARLY => queued.push(start - before),
                        _ => {}
                    }
                    stream_end[stream] = stream_end[stream].max(Some(stop));
                }
            }
        }
        Coupling {
            launch_to_start_us: observed(idle, fallback.launch_to_start_us),
            queue_gap_us: observed(queued, fallback.queue_gap_us),
            sync_own_us: observed(own, fallback.sync_own_us),
            sync_return_us: observed(back, fallback.sync_return_us),
            ..*fallback
        }
    }
}

fn observed(mut delays: Vec<Nanos>, fallback: f64) -> f64 {
    match median(&mut delays) {
        Some(middle) if delays.len() >= ENOUGH => round(middle.as_micros().max(0.0)),
        _ => fallback,
    }
}

/// Rounds to the clock's nanosecond.
fn round(us: f64) -> f64 {
    (us * 1000.0).round() / 1000.0
}
