//! Divisions of scores by a number, and casts around them.

use steptime_aten::{Arg as Argument, Dtype};
use steptime_eager::Role;

use super::Graph;
use crate::piece::Piece;
use crate::slices::Access;

/// Instructions between scores and the input of their softmax, or between the gradients of both.
#[derive(Debug, Clone)]
pub(super) struct Scaling {
    /// The scores, or their gradient.
    pub(super) end: Piece,
    pub(super) divisor: f32,
    pub(super) replaced: Vec<usize>,
}

/// What an instruction does with each element.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    To(Dtype),
    Divide(f32),
}

impl Scaling {
    pub(super) fn dtype(&self) -> Dtype {
        self.end.arg().dtype
    }

    /// The scalings before an instruction that takes `piece`, from none to as many instructions as possible.
    pub(super) fn before(graph: &Graph<'_, '_>, piece: &Piece, mut taken: usize) -> Vec<Scaling> {
        let mut all = Scalings::new(piece);
        let mut piece = piece.clone();
        while let &[made, user] = graph.users(piece.memory)
            && user == taken
            && let Some((step, [from, to])) = step(graph, made)
            && to.key() == piece.key()
        {
            all.steps.insert(0, step);
            all.add(&from, made);
            (taken, piece) = (made, from);
        }
        all.found
    }

    /// The scalings behind an instruction that makes `piece`.
    pub(super) fn after(graph: &Graph<'_, '_>, piece: &Piece, mut made: usize) -> Vec<Scaling> {
        let mut all = Scalings::new(piece);
        let mut piece = piece.clone();
        while let &[maker, user] = graph.users(piece.memory)
            && maker == made
            && let Some((step, [from, to])) = step(graph, user)
            && from.key() == piece.key()
        {
            all.steps.push(step);
            all.add(&to, user);
            (made, piece) = (user, to);
        }
        all.found
    }
}

/// The scalings along a chain of instructions.
struct Scalings {
    steps: Vec<Step>,
    replaced: Vec<usize>,
    found: Vec<Scaling>,
}

impl Scalings {
    fn new(piece: &Piece) -> Scalings {
        let none = Scaling { end: piece.clone(), divisor: 1.0, replaced: Vec::new() };
        let found = if piece.arg().dtype == Dtype::F32 { vec![none] } else { Vec::new() };
        Scalings { steps: Vec::new(), replaced: Vec::new(), found }
    }

    /// Adds an instruction, where the chain to `end` is one that the kernels compute.
    fn add(&mut self, end: &Piece, at: usize) {
        self.replaced.push(at);
        let divisor = match (end.arg().dtype, &self.steps[..]) {
            (Dtype::F32, &[Step::Divide(divisor)]) => divisor,
            (Dtype::Bf16, [Step::To(_)]) => 1.0,
            (Dtype::Bf16, &[Step::Divide(divisor), Step::To(_)] | &[Step::To(_), Step::Divide(divisor)]) => {
                divisor
            }
            _ => return,
        };
        self.found.push(Scaling { end: end.clone(), divisor, replaced: self.replaced.clone() });
    }
}

/// The step of an instruction with its input and its result; `None` of any other instruction.
fn step(graph: &Graph<'_, '_>, at: usize) -> Option<(Step, [Piece; 2])> {
    let [one, other] = <[Piece; 2]>::try_from(graph.pieces(at)).ok()?;
    let (from, to) = match (one.one.access, other.one.access) {
        (Access::Read, Access::Write) => (one, other),
        (Access::Write, Access::Read) => (other, one),
        _ => return None,
    };
    let types = [from.arg().dtype, to.arg().dtype];
    let is_plain = from.arg().shape() == to.arg().shape()
        && [&from, &to].iter().all(|piece| piece.arg().layout.is_contiguous());
    let step = match graph.name(at) {
        "aten::div" if [[Dtype::F32; 2], [Dtype::Bf16; 2]].contains(&types) => {
            Step::Divide(number(graph, at)?)
        }
        "aten::copy_" | "aten::_to_copy" | "steptime::cast"
            if [[Dtype::F32, Dtype::Bf16], [Dtype::Bf16, Dtype::F32]].contains(&types) =>
        {
            Step::To(types[1])
        }
        _ => return None,
    };
    let fits = |divisor: f32| (1e-18..=1e18).contains(&divisor.abs());
    let is_ordinary = !matches!(step, Step::Divide(divisor) if !fits(divisor));
    (is_plain && is_ordinary && from.memory != to.memory).then_some((step, [from, to]))
}

/// The number that an instruction takes as its second argument.
fn number(graph: &Graph<'_, '_>, at: usize) -> Option<f32> {
    let described = graph.places.described;
    let call = described.step.ops[graph.instructions[at].op].call.as_deref()?;
    match call.inputs.get(1)? {
        Argument::Int(value) => Some(*value as f32),
        Argument::Float(value) => Some(*value as f32),
        Argument::Tensor(tensor) => match described.named(*tensor) {
            Some((_, Role::Number(value))) => Some(*value as f32),
            _ => None,
        },
        _ => None,
    }
}
