//! Where kernels share the device, what was launched runs only once somebody asks when it ends.

use steptime_graph::{ActivityId, RendezvousId, StreamId};
use steptime_trace::Nanos;

use super::Engine;
use crate::device::{Device, Times};

impl<'g> Engine<'g> {
    /// Puts an activity into its stream: it may begin at a time, so long after what it waits for, and takes so long alone.
    pub(super) fn queue(&mut self, activity: ActivityId, times: [Nanos; 3]) {
        if let Some(mut device) = self.device.take() {
            device.launch(activity, times, &mut self.times());
            self.device = Some(device);
        }
    }

    /// Lets the device go on until something is known, or until all that was launched has ended or waits for other ranks.
    /// Returns whether it is known.
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

    /// Who came to a rendezvous since it was asked last.
    pub(crate) fn arrived(&mut self) -> Vec<(RendezvousId, ActivityId, Nanos)> {
        self.device.as_mut().map(Device::arrived).unwrap_or_default()
    }

    /// All ranks were at a rendezvous, and its activity ends.
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

    /// Whether all of a stream has ended, as far as it was launched.
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        self.device.as_ref().is_none_or(|device| device.is_idle(stream))
    }
}
