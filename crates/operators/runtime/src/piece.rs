//! Uses of memory by instructions, for passes that put one instruction in place of several.

use steptime_aten::Dtype;
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::Use;
use crate::places::MemoryId;
use crate::program::Instruction;
use crate::slices::Access;

/// A use of memory: the memory itself, and the layout over it.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) memory: MemoryId,
    pub(crate) one: Use,
}

impl Piece {
    /// All uses of an instruction, in order.
    pub(crate) fn all(instruction: &Instruction) -> Vec<Piece> {
        let piece = |one: &Use| Piece { memory: instruction.slots[one.arg.slot].0, one: one.clone() };
        instruction.uses.iter().map(piece).collect()
    }

    pub(crate) fn arg(&self) -> &Arg {
        &self.one.arg
    }

    /// Its elements.
    pub(crate) fn key(&self) -> (MemoryId, &Layout, Dtype) {
        (self.memory, &self.one.arg.layout, self.one.arg.dtype)
    }

    /// The same elements with another access.
    pub(crate) fn with_access(&self, access: Access) -> Piece {
        Piece { memory: self.memory, one: Use { access, ..self.one.clone() } }
    }
}

/// Slots and uses of a new instruction.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) slots: Vec<(MemoryId, Access)>,
    pub(crate) uses: Vec<Use>,
}

impl Bindings {
    /// Adds a use of memory. Returns its operand.
    pub(crate) fn add(&mut self, piece: &Piece) -> Arg {
        let (memory, access) = (piece.memory, piece.one.access);
        let known = self.slots.iter().position(|&(known, _)| known == memory);
        let slot = known.unwrap_or(self.slots.len());
        match known {
            None => self.slots.push((memory, access)),
            Some(known) if self.slots[known].1 != access => self.slots[known].1 = Access::Change,
            Some(_) => {}
        }
        let arg = Arg { slot, ..piece.one.arg.clone() };
        self.uses.push(Use { arg: arg.clone(), ..piece.one.clone() });
        arg
    }
}
