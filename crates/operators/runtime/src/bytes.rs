//! Bytes that instructions read and write.

use steptime_step::UsedBytes;

use crate::arg::Arg;
use crate::program::Instruction;
use crate::slices::Access;

/// Bytes that are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) used: UsedBytes,
    pub(crate) writes: bool,
}

impl Bytes {
    /// The bytes of an operand in memory that begins at byte `base` of a region; `None` of an empty tensor.
    fn of_operand(arg: &Arg, region: u32, base: usize, writes: bool) -> Option<Bytes> {
        let (layout, size) = (&arg.layout, arg.dtype.size());
        let sizes = |all: &[usize]| all.iter().map(|&n| n as u64).collect::<Vec<_>>();
        let (shape, strides) = (sizes(layout.shape()), sizes(layout.strides()));
        let start = base as u64 + layout.offset() as u64 * size;
        let used = UsedBytes::from_elements(region, start, &shape, &strides, [size, arg.pad as u64])?;
        Some(Bytes { used, writes })
    }

    /// A whole piece of memory.
    fn of_whole(region: u32, start: usize, bytes: usize, writes: bool) -> Bytes {
        let (start, end) = (start as u64, (start as u64).saturating_add(bytes as u64));
        Bytes { used: UsedBytes { region, start, end, columns: None }, writes }
    }

    /// The bytes of each use of an instruction at its planned place; `None` for one of an empty tensor.
    pub(crate) fn of_uses(instruction: &Instruction) -> impl Iterator<Item = Option<Bytes>> + '_ {
        instruction.uses.iter().map(|one| {
            let place = instruction.at.get(one.arg.slot)?;
            let writes = place.access != Access::Read;
            Bytes::of_operand(&one.arg, place.region as u32, place.start, writes)
        })
    }

    /// The bytes that an instruction uses in each of its slots at their planned places.
    pub(crate) fn of_slots(instruction: &Instruction) -> Vec<Vec<Bytes>> {
        let mut all = vec![Vec::new(); instruction.at.len()];
        for (one, bytes) in instruction.uses.iter().zip(Bytes::of_uses(instruction)) {
            all.get_mut(one.arg.slot).into_iter().for_each(|own| own.extend(bytes));
        }
        for (own, place) in all.iter_mut().zip(&instruction.at) {
            if own.is_empty() {
                let writes = place.access != Access::Read;
                own.push(Bytes::of_whole(place.region as u32, place.start, place.bytes, writes));
            }
        }
        all
    }

    /// All bytes of an instruction before its memory has places: each piece of memory is a region.
    pub(crate) fn of_memories(instruction: &Instruction) -> Vec<Bytes> {
        let mut all = Vec::new();
        let mut is_known = vec![false; instruction.slots.len()];
        for one in &instruction.uses {
            let (memory, _) = instruction.slots[one.arg.slot];
            is_known[one.arg.slot] = true;
            all.extend(Bytes::of_operand(&one.arg, memory.0 as u32, 0, one.access != Access::Read));
        }
        for (&(memory, access), _) in instruction.slots.iter().zip(is_known).filter(|(_, known)| !known) {
            all.push(Bytes::of_whole(memory.0 as u32, 0, usize::MAX, access != Access::Read));
        }
        all
    }

    /// The same bytes, which are only read.
    pub(crate) fn read(&self) -> Bytes {
        Bytes { writes: false, ..*self }
    }

    /// Whether both have to run one after the other.
    pub(crate) fn conflicts(&self, other: &Bytes) -> bool {
        (self.writes || other.writes) && self.used.overlaps(&other.used)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ops::Range;

    use super::*;

    /// Bytes of one region without gaps.
    pub(crate) fn bytes(range: Range<u64>, writes: bool) -> Bytes {
        let used = UsedBytes { region: 0, start: range.start, end: range.end, columns: None };
        Bytes { used, writes }
    }

    #[test]
    fn one_of_two_that_conflict_writes() {
        let (write, read) = (bytes(0..100, true), bytes(90..200, false));
        assert!(write.conflicts(&read) && read.conflicts(&write));
        assert!(!write.conflicts(&bytes(100..200, true)), "other bytes");
        assert!(!write.read().conflicts(&read), "both read");
    }
}
