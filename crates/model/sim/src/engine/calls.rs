//! Interaction of calls with the device: launches during a call, and waits for the device.

use steptime_graph::{ActivityId, Blocking, CallId, StreamSet, TiSlice};
use steptime_trace::Nanos;

use super::Engine;
use crate::cause::MarkCause;
use crate::stream::UNKNOWN;

impl<'g> Engine<'g> {
    /// Launches the activities that start while the host is still inside the call. Returns whether there were any.
    pub(super) fn launch_early(
        &mut self,
        call: CallId,
        time: Nanos,
        durations: &TiSlice<ActivityId, Nanos>,
    ) -> bool {
        let row = self.graph.calls[call];
        let lead = match row.blocking {
            Blocking::Never => self.leads[call],
            Blocking::Chunked { lead, .. } => Some(match lead.filter(|_| self.delays.recorded) {
                Some(lead) => (lead - self.delays.lead_excess).max(lead / 5),
                None => self.delays.copy_lead,
            }),
            Blocking::Streams(_) | Blocking::Activity(_) => None,
        };
        let Some(lead) = lead else { return false };
        for activity in row.activities() {
            self.launch(activity, time + lead, durations);
        }
        true
    }

    /// Returns the earliest return of a call that waits, and its cause; `None` while it depends on other ranks.
    pub(super) fn return_of(&mut self, call: CallId, time: Nanos) -> Option<(Nanos, MarkCause)> {
        let row = self.graph.calls[call];
        Some(match row.blocking {
            Blocking::Never => (time, MarkCause::Host),
            Blocking::Chunked { tail, .. } => {
                let first = row.first_activity;
                if !self.settle(|engine| engine.ends[first] != UNKNOWN) {
                    return None;
                }
                // The call returns the tail before the copy ends on the device.
                (self.ends[first] - tail, MarkCause::Device(first))
            }
            Blocking::Streams(set) => {
                let idle = |engine: &Engine<'g>| match set {
                    StreamSet::All => engine.streams.keys().all(|stream| engine.is_idle(stream)),
                    StreamSet::One(stream) => engine.is_idle(stream),
                };
                if !self.settle(idle) {
                    return None;
                }
                let last = match set {
                    StreamSet::All => self.streams.keys().max_by_key(|&s| self.streams[s].free),
                    StreamSet::One(stream) => Some(stream),
                };
                let own = time + self.delays.sync_own;
                match last.map(|s| (self.streams[s].free + self.delays.sync_return, s)) {
                    Some((done, stream)) if done > own => (done, self.streams[stream].last_cause()),
                    _ => (own, MarkCause::Host),
                }
            }
            Blocking::Activity(activity) => {
                if !self.settle(|engine| engine.ends[activity] != UNKNOWN) {
                    return None;
                }
                let own = time + self.delays.sync_own;
                let done = self.ends[activity] + self.delays.sync_return;
                if done > own { (done, MarkCause::Device(activity)) } else { (own, MarkCause::Host) }
            }
        })
    }
}
