//! Memory of one instruction: disjoint parts of three regions.

use std::mem;

use smallvec::SmallVec;

/// A region of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// Parameters, optimizer states and constants, which remain from step to step.
    Kept,
    /// Inputs of the step.
    Inputs,
    /// Temporary tensors, which share one arena.
    Arena,
    /// Tables in host memory whose rows a GPU caches. No instruction has this memory.
    Host,
}

impl Region {
    /// The regions in the memory of a program's device.
    pub const ON_DEVICE: [Region; 3] = [Region::Kept, Region::Inputs, Region::Arena];
}

/// Use of memory by an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
    /// Reads old elements and writes new ones.
    Change,
}

/// Memory of an instruction at its planned place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotPlace {
    pub(crate) region: Region,
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) access: Access,
}

/// A part of a region.
enum Slice<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Taken,
}

/// The memory of one instruction, slot by slot.
pub(crate) struct Slices<'a> {
    all: SmallVec<[Slice<'a>; 8]>,
}

impl<'a> Slices<'a> {
    /// Divides regions among slots; `order` sorts the slots by region and start.
    pub(crate) fn new(regions: [&'a mut [u8]; 3], slots: &[SlotPlace], order: &[usize]) -> Slices<'a> {
        let mut rest = regions.map(|region| (region, 0));
        let mut all: SmallVec<[Slice<'a>; 8]> = slots.iter().map(|_| Slice::Taken).collect();
        for &at in order {
            let slot = &slots[at];
            let Some((tail, base)) = rest.get_mut(slot.region as usize) else { continue };
            let (_, from) = mem::take(tail).split_at_mut(slot.start - *base);
            let (own, after) = from.split_at_mut(slot.bytes);
            (*tail, *base) = (after, slot.start + slot.bytes);
            all[at] = if slot.access == Access::Read { Slice::Read(own) } else { Slice::Write(own) };
        }
        Slices { all }
    }

    /// The bytes of a slot that is only read.
    pub(crate) fn read(&self, slot: usize) -> Option<&'a [u8]> {
        match self.all.get(slot)? {
            Slice::Read(bytes) => Some(bytes),
            Slice::Write(_) | Slice::Taken => None,
        }
    }

    /// The bytes of a slot that is written, once.
    pub(crate) fn write(&mut self, slot: usize) -> Option<&'a mut [u8]> {
        match mem::replace(self.all.get_mut(slot)?, Slice::Taken) {
            Slice::Write(bytes) => Some(bytes),
            Slice::Read(_) | Slice::Taken => None,
        }
    }
}
