//! Which dimensions of an op's tensors are the same dimension.

mod by_name;
mod sparse;

use steptime_aten::{Lowering, OpCall, OpSet};
use steptime_step::{Call, OpId, Step, TensorId};

pub(super) use self::sparse::Sparse;

/// A dimension of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dim {
    pub tensor: TensorId,
    pub at: usize,
}

/// Two dimensions that grow together, two tensors of the same elements in another shape, or dimensions that are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    Same(Dim, Dim),
    Reshape(TensorId, TensorId),
    /// Dimensions that are laid one after the other, and the dimension that they become.
    Joined(Vec<Dim>, Dim),
}

/// An op with its tensors, by argument.
struct Seen<'s> {
    step: &'s Step,
    ids: &'s Call,
    call: &'s OpCall,
    sparse: &'s Sparse,
    links: Vec<Link>,
}

/// The links that an op makes between its tensors.
pub(super) fn of(step: &Step, op: OpId, ops: &OpSet, sparse: &Sparse) -> Vec<Link> {
    let (Some(ids), Some(call)) = (&step.ops[op].call, step.call(op)) else { return Vec::new() };
    // What comes from other ranks is of their samples.
    if is_exchange(step, op) {
        return Vec::new();
    }
    let inside = !step.ops[op].children.is_empty();
    let composite = inside
        && ops.find(&call.name).is_some()
        && step.lower(op, ops).is_some_and(|lowered| *lowered == Lowering::Children);
    let mut seen = Seen { step, ids, call, sparse, links: Vec::new() };
    // An op that calls others leaves it to them, unless none was recorded.
    if !(seen.by_name() || composite) {
        seen.by_shape();
    }
    seen.links
}

/// Whether an op asks for a collective, or is NCCL's label of one.
fn is_exchange(step: &Step, op: OpId) -> bool {
    step.subtree(op).into_iter().any(|op| step.ops[op].exchange.is_some())
        && (step.ops[op].exchange.is_some() || step.ops[op].name.starts_with("c10d::"))
}

impl Seen<'_> {
    fn input(&self, arg: usize) -> Option<TensorId> {
        self.ids.inputs.get(arg)?.tensors().first().copied()
    }

    fn output(&self, ret: usize) -> Option<TensorId> {
        self.ids.outputs.get(ret)?.tensors().first().copied()
    }

    fn shape(&self, tensor: TensorId) -> &[i64] {
        &self.step.tensors[tensor].value.shape
    }

    /// What the op's sparse argument was made of.
    fn sparse(&self) -> Option<(TensorId, TensorId)> {
        let x = self.input(0)?;
        let alike = |(other, _): &(&TensorId, _)| self.shape(**other) == self.shape(x);
        self.sparse.0.get(&x).or_else(|| self.sparse.0.iter().find(alike).map(|(_, made)| made)).copied()
    }

    /// Links two dimensions, counted from the end where negative.
    fn same(&mut self, a: Option<TensorId>, i: isize, b: Option<TensorId>, j: isize) {
        let (Some(a), Some(b)) = (a, b) else { return };
        let at = |tensor: TensorId, dim: isize| {
            let rank = self.shape(tensor).len() as isize;
            let at = if dim < 0 { rank + dim } else { dim };
            (0..rank).contains(&at).then_some(Dim { tensor, at: at as usize })
        };
        if let (Some(one), Some(two)) = (at(a, i), at(b, j)) {
            self.links.push(Link::Same(one, two));
        }
    }

    /// The leading dimensions of one tensor are those of another, which has more.
    fn leading(&mut self, few: Option<TensorId>, more: Option<TensorId>) {
        let Some(few) = few else { return };
        for at in 0..self.shape(few).len() as isize {
            self.same(Some(few), at, more, at);
        }
    }

    fn alike(&mut self, a: Option<TensorId>, b: Option<TensorId>) {
        self.leading(a, b);
    }

    fn if_equal(&mut self, a: Option<TensorId>, i: isize, b: Option<TensorId>, j: isize) {
        let size = |tensor: Option<TensorId>, dim: isize| {
            let shape = self.shape(tensor?);
            let at = if dim < 0 { shape.len().checked_sub(dim.unsigned_abs())? } else { dim as usize };
            shape.get(at).copied()
        };
        if size(a, i).is_some_and(|size| Some(size) == self.size(b, j)) {
            self.same(a, i, b, j);
        }
    }

    fn size(&self, tensor: Option<TensorId>, dim: isize) -> Option<i64> {
        let shape = self.shape(tensor?);
        let at = if dim < 0 { shape.len().checked_sub(dim.unsigned_abs())? } else { dim as usize };
        shape.get(at).copied()
    }

    /// Statistics have fewer dimensions than the data: the leading ones are the same. What has a single dimension is a
    /// weight.
    fn by_leading(&mut self) {
        let Some(x) = self.input(0) else { return };
        let all: Vec<TensorId> = self.ids.gives().chain(self.ids.takes()).collect();
        for other in all {
            let shared = self.shape(x).len().min(self.shape(other).len()) as isize;
            if shared > 1 {
                (0..shared).for_each(|at| self.if_equal(Some(x), at, Some(other), at));
            }
        }
    }

    /// Where the name says nothing: of tensors of the same rank, dimensions of the same place and size; of others, those
    /// that lie the same way from the end, as they are broadcast.
    fn by_shape(&mut self) {
        let all: Vec<TensorId> = self.ids.gives().chain(self.ids.takes()).collect();
        // Lists of parameters are no one's batch.
        if all.len() > 64 {
            return;
        }
        for (place, &a) in all.iter().enumerate() {
            for &b in &all[place + 1..] {
                let (one, two) = (self.shape(a).len() as isize, self.shape(b).len() as isize);
                if a == b || one == 0 || two == 0 {
                    continue;
                }
                if one == two {
                    (0..one).for_each(|at| self.if_equal(Some(a), at, Some(b), at));
                } else {
                    (1..=one.min(two)).for_each(|back| self.if_equal(Some(a), -back, Some(b), -back));
                }
            }
        }
    }
}
