//! Lazy simulation of a shared device: launched activities run only when the end of one is queried.

use steptime_graph::{ActivityId, RendezvousId, StreamId};
use steptime_trace::Nanos;

use super::Engine;
use crate::device::{Device, Times};

impl<'g> Engine<'g> {
    /// Puts an activity into its stream; `times` are its earliest beginning, its delay after its predecessors, and its duration alone.
    pub(super) fn queue(&mut self, activity: ActivityId, times: [Nanos; 3]) {
        if let Some(mut device) = self.device.take() {
            device.launch(activity, times, &mut self.times());
            self.device = Some(device);
        }
    }

    /// Advances the device until `known` holds, or until all launched activities have ended or wait for other ranks.
    /// Returns whether `known` holds.
    pub(super) fn settle(&mut self, known: impl Fn(&Engine<'g>) -> bool) -> bool {
        let Some(mut device) = self.device.take() else { return true };
        loop {
            self.device = Some(device);
            if known(self) {
                return true;
            }
            let Some(mut taken) = self.device.take() else { return true };
            if !taken.go_on(&mut self.times()) {
                self.device = Some(taken);
                return false;
            }
            device = taken;
        }
    }

    /// Returns the arrivals at rendezvous since the last call.
    pub(crate) fn arrived(&mut self) -> Vec<(RendezvousId, ActivityId, Nanos)> {
        self.device.as_mut().map(Device::arrived).unwrap_or_default()
    }

    /// Ends an activity once all ranks have arrived at its rendezvous.
    pub(crate) fn leave(&mut self, activity: ActivityId, at: Nanos) {
        if let Some(mut device) = self.device.take() {
            device.leave(activity, at, &mut self.times());
            self.device = Some(device);
        }
    }

    fn times(&mut self) -> Times<'_> {
        Times {
            streams: &mut self.streams,
            starts: &mut self.starts,
            ends: &mut self.ends,
            ends_before: &self.ends_before,
            causes: &mut self.activity_causes,
        }
    }

    /// Whether all activities launched into a stream have ended.
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        self.device.as_ref().is_none_or(|device| device.is_idle(stream))
    }
}
