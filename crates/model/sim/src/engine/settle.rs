//! Where kernels share the device, what was launched runs only once somebody asks when it ends.

use steptime_graph::{ActivityId, StreamId};
use steptime_trace::Nanos;

use super::Engine;
use crate::device::Times;

impl<'g> Engine<'g> {
    /// Puts an activity into its stream: it may begin at a time, so long after what it waits for, and takes so long alone.
    pub(super) fn queue(&mut self, activity: ActivityId, times: [Nanos; 3]) {
        if let Some(mut device) = self.device.take() {
            device.launch(activity, times, &mut self.times());
            self.device = Some(device);
        }
    }

    /// Lets the device go on until something is known, or all that was launched has ended.
    pub(super) fn settle(&mut self, known: impl Fn(&Engine<'g>) -> bool) {
        let Some(mut device) = self.device.take() else { return };
        loop {
            self.device = Some(device);
            if known(self) {
                return;
            }
            let Some(mut taken) = self.device.take() else { return };
            if !taken.go_on(&mut self.times()) {
                self.device = Some(taken);
                return;
            }
            device = taken;
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
