//! Own time of calls that wait for the whole device: `cudaFree`, `cudaDeviceSynchronize`.
//!
//! Every waiting call returns a few microseconds after the device is done ([`Coupling`]). These calls also have work of their own:
//! memory is unmapped, a context is traversed. Its duration is only in the recording, call by call.

use rustc_hash::FxHashMap;
use steptime_graph::{ApiKind, Blocking, CallId, StepGraph, StreamId, TiVec, median};
use steptime_trace::Nanos;

use super::host_device_delays::Coupling;

/// Own work below this is the noise of waiting.
const NOISE: Nanos = Nanos(10_000);

/// Returns for each call that waits for the whole device and has work of its own the median of that work over the steps.
pub(super) fn own_work(graph: &StepGraph, coupling: &Coupling) -> FxHashMap<CallId, Nanos> {
    let works = |call: &CallId| {
        let row = &graph.calls[*call];
        matches!(row.kind, ApiKind::Free | ApiKind::DeviceSync)
            && matches!(row.blocking, Blocking::Streams(_))
    };
    if !graph.calls.keys().any(|call| works(&call)) {
        return FxHashMap::default();
    }
    let us = Nanos::from_micros_f64;
    let (idle, waited) = (us(coupling.sync_own_us), us(coupling.sync_return_us));
    let samples = &graph.samples;
    let calls = graph.calls_by_time();
    let mut found: FxHashMap<CallId, Vec<Nanos>> = FxHashMap::default();
    let mut ends: TiVec<StreamId, Option<Nanos>> = vec![None; graph.streams.len()].into();
    for step in samples.steps() {
        for &call in &calls {
            let row = &graph.calls[call];
            let times = (samples.mark(step, row.begin), samples.mark(step, row.end));
            if let (Some(begin), Some(end)) = times
                && works(&call)
            {
                let done = ends.iter().flatten().max().copied().unwrap_or(begin);
                let usual = if done > begin { done + waited } else { begin + idle };
                found.entry(call).or_default().push(end - usual);
            }
            for activity in row.activities() {
                let stream = &mut ends[graph.activities[activity].stream];
                *stream = (*stream).max(samples.activity_end(step, activity));
            }
        }
    }
    let typical = |(call, mut times): (CallId, Vec<Nanos>)| Some((call, median(&mut times)?));
    found.into_iter().filter_map(typical).filter(|&(_, work)| work > NOISE).collect()
}
