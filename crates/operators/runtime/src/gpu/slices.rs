//! Memory of one instruction on a GPU: disjoint parts of three regions.

use std::mem;

use smallvec::SmallVec;
use steptime_cuda::{Slice, SliceMut};

use crate::arg::{Arg, SharedMemory};
use crate::slices::{Access, SlotPlace};

/// A part of a region.
enum Part<'a> {
    Read(Slice<'a, u8>),
    Write(SliceMut<'a, u8>),
    Taken,
}

/// The memory of one instruction, slot by slot.
pub(crate) struct GpuSlices<'a> {
    all: SmallVec<[Part<'a>; 8]>,
}

impl<'a> GpuSlices<'a> {
    /// Divides regions among slots; `order` sorts the slots by region and start.
    pub(crate) fn new(regions: [SliceMut<'a, u8>; 3], slots: &[SlotPlace], order: &[usize]) -> GpuSlices<'a> {
        let mut rest = regions.map(|region| (Some(region), 0));
        let mut all: SmallVec<[Part<'a>; 8]> = slots.iter().map(|_| Part::Taken).collect();
        for &at in order {
            let slot = &slots[at];
            let Some((tail, base)) = rest.get_mut(slot.region as usize) else { continue };
            let Some(whole) = tail.take() else { continue };
            let (_, from) = whole.split_at(slot.start - *base);
            let (own, after) = from.split_at(slot.bytes);
            (*tail, *base) = (Some(after), slot.start + slot.bytes);
            all[at] = match slot.access {
                Access::Read => Part::Read(own.into_ref()),
                Access::Write | Access::Change => Part::Write(own),
            };
        }
        GpuSlices { all }
    }

    /// Address of an operand's first element.
    pub(crate) fn address(&self, arg: &Arg) -> Result<u64, SharedMemory> {
        let base = match self.all.get(arg.slot) {
            Some(Part::Read(bytes)) => bytes.address(),
            Some(Part::Write(bytes)) => bytes.address(),
            Some(Part::Taken) | None => return Err(SharedMemory),
        };
        Ok(base + arg.layout.offset() as u64 * arg.dtype.size())
    }

    /// The bytes of a slot that is only read.
    pub(crate) fn read(&self, slot: usize) -> Option<Slice<'a, u8>> {
        match self.all.get(slot)? {
            Part::Read(bytes) => Some(*bytes),
            Part::Write(_) | Part::Taken => None,
        }
    }

    /// The bytes of a slot that is written, once.
    pub(crate) fn write(&mut self, slot: usize) -> Option<SliceMut<'a, u8>> {
        match mem::replace(self.all.get_mut(slot)?, Part::Taken) {
            Part::Write(bytes) => Some(bytes),
            Part::Read(_) | Part::Taken => None,
        }
    }
}
