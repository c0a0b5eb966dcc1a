//! Functions of elements that are joined.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::{Chain, Function, MOST_OPERANDS};
use steptime_tensor::Layout;

use super::{Memories, Sharing};
use crate::arg::Arg;
use crate::binder::Use;
use crate::gpu::{ElementFunction, GpuPointwise, element_type};
use crate::kernel::Kernel;
use crate::piece::{Bindings, Piece};
use crate::places::MemoryId;
use crate::program::Instruction;
use crate::slices::Access;

/// Name of a joined instruction.
const NAME: &str = "steptime::pointwise";

/// Largest number of functions of a kernel.
const MOST_FUNCTIONS: usize = 64;

/// A function with its operands in memory.
#[derive(Debug, Clone)]
pub(super) struct Member {
    number: usize,
    function: Function,
    inputs: Vec<Piece>,
    outputs: Vec<Piece>,
}

impl Member {
    /// The function of an instruction.
    pub(super) fn new(number: usize, instruction: &Instruction, of: &ElementFunction) -> Member {
        let piece = |arg: &Arg, access: Access| {
            let own = instruction
                .uses
                .iter()
                .find(|one| one.arg == *arg && (one.access == Access::Read) == (access == Access::Read));
            let own = own.or_else(|| instruction.uses.iter().find(|one| one.arg == *arg));
            let tensor = own.map_or(instruction.uses[0].tensor, |one| one.tensor);
            let one = Use { tensor, access, arg: arg.clone() };
            Piece { memory: instruction.slots[arg.slot].0, one }
        };
        Member {
            number,
            function: of.function.clone(),
            inputs: of.inputs.iter().map(|arg| piece(arg, Access::Read)).collect(),
            outputs: of.outputs.iter().map(|arg| piece(arg, Access::Write)).collect(),
        }
    }

    /// Memory of its results.
    pub(super) fn results(&self) -> impl Iterator<Item = MemoryId> + '_ {
        self.outputs.iter().map(|piece| piece.memory)
    }

    /// Its operands, and whether it writes them.
    fn pieces(&self) -> impl Iterator<Item = (&Piece, bool)> {
        let [inputs, outputs] = [(&self.inputs, false), (&self.outputs, true)]
            .map(|(pieces, writes)| pieces.iter().map(move |piece| (piece, writes)));
        inputs.chain(outputs)
    }

    fn shape(&self) -> &[usize] {
        self.outputs[0].one.arg.shape()
    }
}

/// Functions in order.
#[derive(Debug)]
pub(super) struct Group {
    members: Vec<Member>,
}

impl Group {
    pub(super) fn new(member: Member) -> Group {
        Group { members: vec![member] }
    }

    /// Adds later functions.
    pub(super) fn extend(&mut self, other: Group) {
        self.members.extend(other.members);
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.members.iter().any(|member| member.number == number)
    }

    /// The shape of the elements: the largest of its functions, to which the others broadcast.
    fn shape(&self) -> &[usize] {
        let shapes = self.members.iter().map(Member::shape);
        shapes.max_by_key(|shape| (shape.iter().product::<usize>(), shape.len())).unwrap_or(&[])
    }

    fn pieces(&self) -> impl Iterator<Item = (&Piece, bool)> {
        self.members.iter().flat_map(Member::pieces)
    }

    /// Whether a later group can be computed in one kernel with this one, and saves a pass over memory so.
    pub(super) fn joins(&self, later: &Group, sharing: Sharing, memories: &Memories<'_>) -> bool {
        let elements = self.shape().iter().product::<usize>().max(later.shape().iter().product());
        let mut is_shared = false;
        for (one, writes) in self.pieces() {
            for (other, also_writes) in later.pieces().filter(|(other, _)| other.memory == one.memory) {
                let same = one.key() == other.key();
                if (writes || also_writes) && !same {
                    return false;
                }
                let is_large = 2 * one.one.arg.len() >= elements;
                let is_operand = sharing == Sharing::Operands && is_large;
                is_shared |= same && (writes || also_writes || is_operand);
            }
        }
        let count = self.members.len() + later.members.len();
        is_shared && count <= MOST_FUNCTIONS && self.is_small(later) && self.fits(later, memories)
    }

    /// Whether both have few operands.
    fn is_small(&self, later: &Group) -> bool {
        let mut known: Vec<(MemoryId, &Layout, Dtype, bool)> = Vec::new();
        for (piece, writes) in self.pieces().chain(later.pieces()) {
            let (memory, layout, dtype) = piece.key();
            if !known.contains(&(memory, layout, dtype, writes)) {
                known.push((memory, layout, dtype, writes));
            }
        }
        known.len() <= MOST_OPERANDS
    }

    /// Whether one shape is that of the other, or broadcasts to it without results that others read.
    fn fits(&self, later: &Group, memories: &Memories<'_>) -> bool {
        if self.shape() == later.shape() {
            return true;
        }
        let (small, large) = if broadcasts(self.shape(), later.shape()) {
            (self, later)
        } else if broadcasts(later.shape(), self.shape()) {
            (later, self)
        } else {
            return false;
        };
        let both = Group { members: self.members.iter().chain(&later.members).cloned().collect() };
        let is_stored = |member: &Member| {
            member.results().any(|memory| memories.is_read_outside(memory, &both, member.number))
        };
        !small.members.iter().any(is_stored) && !large.shape().is_empty()
    }

    /// One instruction in place of those of the functions.
    pub(super) fn instruction(
        self,
        parts: Vec<Instruction>,
        memories: &Memories<'_>,
    ) -> Result<Instruction, String> {
        let chain = self.chain(memories)?;
        let mut bindings = Bindings::default();
        let inputs = chain.inputs.iter().map(|piece| bindings.add(piece)).collect();
        let outputs = chain.outputs.iter().map(|piece| bindings.add(piece)).collect();
        let kernel = Kernel::Gpu(Box::new(GpuPointwise::new(chain.chain, inputs, outputs)?));
        let first = parts.into_iter().next();
        let (op, place) = first.map_or_else(Default::default, |first| (first.op, first.place));
        let (at, order) = (Vec::new(), Vec::new());
        let Bindings { slots, uses } = bindings;
        Ok(Instruction { op, name: NAME.to_owned(), place, slots, uses, at, order, kernel })
    }

    /// The functions as a chain.
    fn chain(&self, memories: &Memories<'_>) -> Result<BoundChain, String> {
        let mut inputs: Vec<&Piece> = Vec::new();
        let mut written: Vec<(&Piece, usize)> = Vec::new();
        for member in &self.members {
            for piece in &member.inputs {
                let is_known = written.iter().any(|(known, _)| known.key() == piece.key())
                    || inputs.iter().any(|known| known.key() == piece.key());
                if !is_known {
                    inputs.push(piece);
                }
            }
            for piece in &member.outputs {
                written.retain(|(known, _)| known.key() != piece.key());
                written.push((piece, member.number));
            }
        }
        let types = inputs.iter().map(|piece| element_type(piece.one.arg.dtype));
        let mut chain = Chain::new(&types.collect::<Result<Vec<_>, _>>()?);
        let mut values: Vec<(&Piece, usize)> = inputs.iter().copied().zip(0..).collect();
        // The last value of a piece is its present one.
        let value_of = |values: &[(&Piece, usize)], piece: &Piece| {
            let own = values.iter().rev().find(|(known, _)| known.key() == piece.key());
            own.map(|&(_, value)| value).ok_or_else(|| "an operand of a function has no value".to_owned())
        };
        for member in &self.members {
            let operands = member.inputs.iter().map(|piece| value_of(&values, piece));
            let operands = operands.collect::<Result<Vec<_>, _>>()?;
            let types = member.outputs.iter().map(|piece| element_type(piece.one.arg.dtype));
            let types = types.collect::<Result<Vec<_>, _>>()?;
            let results = chain.call(member.function.clone(), &operands, &types);
            values.extend(member.outputs.iter().zip(results.map_err(|source| source.to_string())?));
        }
        let mut outputs = Vec::new();
        for (piece, writer) in written {
            if memories.is_read_outside(piece.memory, self, writer) {
                chain.store(value_of(&values, piece)?).map_err(|source| source.to_string())?;
                outputs.push(piece.clone());
            }
        }
        Ok(BoundChain { chain, inputs: inputs.into_iter().cloned().collect(), outputs })
    }
}

/// A chain with its operands in memory.
struct BoundChain {
    chain: Chain,
    inputs: Vec<Piece>,
    outputs: Vec<Piece>,
}

/// Whether a shape broadcasts to another one.
fn broadcasts(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len()
        && from.iter().rev().zip(to.iter().rev()).all(|(&own, &size)| own == size || own == 1)
}
