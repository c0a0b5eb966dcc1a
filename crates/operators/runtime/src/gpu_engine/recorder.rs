//! Parts of an instruction that is captured.

use steptime_cuda::{Error, Parts};

use super::hazards::Hazards;
use crate::bytes::Bytes;
use crate::gpu::PartSink;

/// Gives the launches of one instruction to the parts of a graph.
pub(super) struct Recorder<'a, 's> {
    parts: &'a mut Parts<'s>,
    hazards: &'a mut Hazards,
    /// Bytes of each slot.
    slots: Vec<Vec<Bytes>>,
    own: Vec<usize>,
}

impl<'a, 's> Recorder<'a, 's> {
    pub(super) fn new(
        parts: &'a mut Parts<'s>,
        hazards: &'a mut Hazards,
        slots: Vec<Vec<Bytes>>,
    ) -> Recorder<'a, 's> {
        Recorder { parts, hazards, slots, own: Vec::new() }
    }

    /// Ends the last part, which uses all slots and waits for all others of the instruction.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let bytes = self.slots.concat();
        let own = std::mem::take(&mut self.own);
        self.add(bytes, &own).map(|_| ())
    }

    fn add(&mut self, bytes: Vec<Bytes>, after: &[usize]) -> Result<Option<usize>, Error> {
        let found = self.hazards.find(&bytes, after);
        let part = self.parts.end(&found)?;
        if let Some(part) = part {
            self.hazards.push(bytes, &found);
            self.own.push(part);
        }
        Ok(part)
    }
}

impl PartSink for Recorder<'_, '_> {
    fn end(&mut self, reads: &[usize], writes: &[usize], after: &[usize]) -> Result<Option<usize>, Error> {
        let read = reads.iter().flat_map(|&slot| &self.slots[slot]).map(|bytes| bytes.read());
        let written = writes.iter().flat_map(|&slot| &self.slots[slot]).copied();
        let bytes = read.chain(written).collect();
        self.add(bytes, after)
    }
}
