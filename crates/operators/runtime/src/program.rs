//! A compiled step: a flat list of instructions, and the memory that they use.

use std::fmt;

use steptime_step::{OpId, TensorId};

use crate::binder::Use;
use crate::inputs::Inputs;
use crate::kept::Kept;
use crate::kernel::Kernel;
use crate::places::MemoryId;
use crate::plan::MemoryPlan;
use crate::row_cache_plan::RowCachePlan;
use crate::slices::{Access, Region, SlotPlace};
use crate::target::Target;

/// A compiled step.
#[derive(Debug)]
pub struct Program {
    pub(crate) target: Target,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) plan: MemoryPlan,
    pub(crate) inputs: Inputs,
    pub(crate) kept: Vec<Kept>,
    /// Memory and position of the loss of each round; empty for a step without one.
    pub(crate) losses: Vec<(MemoryId, usize)>,
    /// Class of the optimizer, such as `SGD`.
    pub(crate) optimizer: Option<String>,
    /// Number of ranks of its job.
    pub(crate) ranks: usize,
    /// Row caches of tables in host memory.
    pub(crate) row_caches: Vec<RowCachePlan>,
}

/// An op that runs as a whole.
#[derive(Debug)]
pub struct Instruction {
    /// The op.
    pub op: OpId,
    /// Its name.
    pub name: String,
    /// Names of the modules and functions around it, the outermost first.
    pub place: String,
    pub(crate) slots: Vec<(MemoryId, Access)>,
    /// Tensors that it uses.
    pub(crate) uses: Vec<Use>,
    /// The slots at their planned places.
    pub(crate) at: Vec<SlotPlace>,
    /// Slots sorted by region and place.
    pub(crate) order: Vec<usize>,
    pub(crate) kernel: Kernel,
}

impl Instruction {
    /// Sets the places of its memory by a plan.
    pub(crate) fn place(&mut self, plan: &MemoryPlan) {
        let place = |&(memory, access): &(MemoryId, Access)| {
            let piece = plan.piece(memory);
            SlotPlace { region: piece.region, start: piece.start, bytes: piece.bytes, access }
        };
        self.at = self.slots.iter().map(place).collect();
        self.order = (0..self.at.len()).collect();
        let at = &self.at;
        self.order.sort_by_key(|&slot| (at[slot].region, at[slot].start, at[slot].bytes));
    }

    /// Tensors of the step that it reads and writes, in order.
    pub fn tensors(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.uses.iter().map(|one| one.tensor)
    }
}

impl Program {
    /// The instructions in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Device that it is compiled for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The memory plan.
    #[must_use]
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// Names of the inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.keys().map(String::as_str)
    }

    /// Number of elements of an input; 0 where no instruction takes it.
    #[must_use]
    pub fn input_len(&self, name: &str) -> usize {
        self.inputs.get(name).and_then(|parts| parts.first()).map_or(0, |part| part.len)
    }

    /// Number of losses that a step averages: that of its rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.losses.len().max(1)
    }

    /// Class of the optimizer, such as `SGD`; `None` for a step without one.
    #[must_use]
    pub fn optimizer(&self) -> Option<&str> {
        self.optimizer.as_deref()
    }
}

/// One line per instruction: number, op, and its tensors with shape and place: region (kept, inputs, arena, host) and first byte; `*` marks tensors
/// that it writes.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, instruction) in self.instructions.iter().enumerate() {
            write!(f, "{at:4} {}", instruction.name)?;
            for one in &instruction.uses {
                let place = &instruction.at[one.arg.slot];
                let region = match place.region {
                    Region::Kept => 'k',
                    Region::Inputs => 'i',
                    Region::Arena => 'a',
                    Region::Host => 'h',
                };
                let start = place.start + one.arg.layout.offset() * one.arg.dtype.size() as usize;
                let mark = if one.access == Access::Read { "" } else { "*" };
                write!(f, " {:?}{region}{start}{mark}", one.arg.shape())?;
            }
            writeln!(f)?;
        }
        let [kept, inputs, arena] = Region::ON_DEVICE.map(|region| self.plan.bytes(region));
        write!(f, "kept {kept} B, inputs {inputs} B, arena {arena} B")?;
        match self.plan.bytes(Region::Host) {
            0 => writeln!(f),
            host => writeln!(f, ", host {host} B"),
        }
    }
}
