//! Memory that instructions use, before it has a place.

use crate::places::MemoryId;
use crate::program::Instruction;
use crate::slices::Access;

/// Bytes of memory that an instruction reads or writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch {
    memory: MemoryId,
    start: usize,
    end: usize,
    writes: bool,
}

impl Touch {
    /// Whether both have to keep their order.
    pub(super) fn conflicts(&self, other: &Touch) -> bool {
        (self.writes || other.writes)
            && self.memory == other.memory
            && self.start < other.end
            && other.start < self.end
    }
}

/// All memory of an instruction.
pub(super) fn touches(instruction: &Instruction) -> Vec<Touch> {
    let mut all = Vec::new();
    let mut is_known = vec![false; instruction.slots.len()];
    for one in &instruction.uses {
        let (layout, size) = (&one.arg.layout, one.arg.dtype.size() as usize);
        let (memory, _) = instruction.slots[one.arg.slot];
        is_known[one.arg.slot] = true;
        let Some(last) = layout.last() else { continue };
        let (start, end) = (layout.offset() * size, (last + one.arg.pad + 1) * size);
        all.push(Touch { memory, start, end, writes: one.access != Access::Read });
    }
    for (&(memory, access), _) in instruction.slots.iter().zip(is_known).filter(|(_, known)| !known) {
        all.push(Touch { memory, start: 0, end: usize::MAX, writes: access != Access::Read });
    }
    all
}
