//! Links between the dimensions of an op's tensors.

mod by_name;
mod layers;
mod lookups;
mod pieces;
mod products;
mod sparse;
mod stacked;
mod views;

use smallvec::SmallVec;
use steptime_aten::{BoundCall, Lowering, OpCall, OpSet};
use steptime_step::{Call, OpId, StepIr, TensorId};

use self::sparse::Sparse;
use self::stacked::Joins;

/// A dimension of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dim {
    pub tensor: TensorId,
    pub at: usize,
}

/// A relation between sizes. The two dimensions are equal unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// Two equal dimensions.
    Same(Dim, Dim),
    /// A dimension of size one, and the operands' dimensions that were broadcast to it, which are of size one as well.
    Spread(SmallVec<[Dim; 2]>, Dim),
    /// The same elements in another shape, of which one size may be -1.
    Reshape(TensorId, TensorId, Option<usize>),
    /// Concatenated dimensions, and the resulting dimension.
    Joined(Vec<Dim>, Dim),
    /// A part of a dimension, from `start` on.
    Piece { whole: Dim, piece: Dim, start: i64 },
    /// The second is longer by a fixed number, which may be negative.
    Longer(Dim, Dim),
    /// The second is N times the first.
    Repeated(Dim, Dim, i64),
    /// The second is fixed where the first is.
    Follows(Dim, Dim),
    /// The dimension is fixed by the op.
    Fixed(Dim),
    /// The first is proportional to the second.
    Each(Dim, Dim),
    /// The first is known to be the sample dimension, and the others are not.
    Samples(Dim, SmallVec<[Dim; 4]>),
}

/// Origins of tensors, on which the links of an op depend beside its arguments.
pub(super) struct TensorOrigins {
    sparse: Sparse,
    joins: Joins,
}

impl TensorOrigins {
    /// The origins in a step.
    pub fn find(step: &StepIr) -> TensorOrigins {
        TensorOrigins { sparse: Sparse::find(step), joins: Joins::find(step) }
    }
}

/// An op with its tensors, by argument.
struct OpTensors<'s> {
    step: &'s StepIr,
    op: OpId,
    ids: &'s Call,
    call: &'s OpCall,
    /// The call with named arguments, where the op is known.
    bound: Option<BoundCall<'s>>,
    made_of: &'s TensorOrigins,
    links: Vec<Link>,
}

/// The links that an op makes between its tensors.
pub(super) fn find(step: &StepIr, op: OpId, ops: &OpSet, made_of: &TensorOrigins) -> Vec<Link> {
    let (Some(ids), Some(call)) = (&step.ops[op].call, step.call(op)) else { return Vec::new() };
    // Tensors received from other ranks have the samples of those.
    if is_exchange(step, op) {
        return Vec::new();
    }
    let inside = !step.ops[op].children.is_empty();
    let composite = inside
        && ops.find(&call.name).is_some()
        && step.lower(op, ops).is_some_and(|lowered| *lowered == Lowering::Children);
    let mut seen = OpTensors { step, op, ids, call, bound: ops.bind(call), made_of, links: Vec::new() };
    // The links of an op that calls others are those of the inner ops, unless none was recorded.
    if !(seen.by_name() || composite) {
        seen.by_place_from_the_end();
    }
    seen.links
}

/// Whether an op requests a collective, or is NCCL's label of one.
pub(super) fn is_exchange(step: &StepIr, op: OpId) -> bool {
    let row = &step.ops[op];
    row.exchange.is_some()
        || (row.name.starts_with("c10d::")
            && step.subtree(op).into_iter().any(|op| step.ops[op].exchange.is_some()))
}

impl OpTensors<'_> {
    fn input(&self, arg: usize) -> Option<TensorId> {
        self.ids.inputs.get(arg)?.tensors().first().copied()
    }

    fn output(&self, ret: usize) -> Option<TensorId> {
        self.ids.outputs.get(ret)?.tensors().first().copied()
    }

    /// The tensor of a named argument.
    fn named(&self, name: &str) -> Option<TensorId> {
        let bound = self.bound.filter(|bound| bound.has(name))?;
        self.input(bound.position(name)?)
    }

    /// The integer of a named argument.
    fn number(&self, name: &str) -> Option<i64> {
        self.bound.filter(|bound| bound.has(name))?.int(name)
    }

    fn numbers(&self, name: &str) -> Option<SmallVec<[i64; 4]>> {
        self.bound.filter(|bound| bound.has(name))?.ints(name)
    }

    fn shape(&self, tensor: TensorId) -> &[i64] {
        &self.step.tensors[tensor].value.shape
    }

    fn rank(&self, tensor: Option<TensorId>) -> isize {
        tensor.map_or(0, |tensor| self.shape(tensor).len() as isize)
    }

    /// A dimension, counted from the end where negative.
    fn dim(&self, tensor: Option<TensorId>, at: isize) -> Option<Dim> {
        let tensor = tensor?;
        let rank = self.shape(tensor).len() as isize;
        let at = if at < 0 { rank + at } else { at };
        (0..rank).contains(&at).then_some(Dim { tensor, at: at as usize })
    }

    fn size(&self, dim: Dim) -> i64 {
        self.shape(dim.tensor)[dim.at]
    }

    /// Links two dimensions as equal, if they have the same size.
    fn same(&mut self, a: Option<TensorId>, i: isize, b: Option<TensorId>, j: isize) {
        if let (Some(one), Some(two)) = (self.dim(a, i), self.dim(b, j))
            && self.size(one) == self.size(two)
            && one != two
        {
            self.links.push(Link::Same(one, two));
        }
    }

    /// Links all dimensions of a tensor to the leading ones of another.
    fn leading(&mut self, few: Option<TensorId>, more: Option<TensorId>) {
        (0..self.rank(few)).for_each(|at| self.same(few, at, more, at));
    }

    /// Links two dimensions as equal, or the second as fixed where the first is.
    fn follows(&mut self, a: Option<TensorId>, i: isize, b: Option<TensorId>, j: isize) {
        let (Some(one), Some(two)) = (self.dim(a, i), self.dim(b, j)) else { return };
        let link = if self.size(one) == self.size(two) { Link::Same } else { Link::Follows };
        self.links.push(link(one, two));
    }

    /// Links the sample dimension of a tensor, with all its other dimensions.
    fn samples(&mut self, tensor: Option<TensorId>, at: isize) {
        if let Some(dim) = self.dim(tensor, at) {
            let others = (0..self.rank(tensor)).filter(|&other| other != at);
            let others = others.filter_map(|other| self.dim(tensor, other)).collect();
            self.links.push(Link::Samples(dim, others));
        }
    }

    fn fixed(&mut self, tensor: Option<TensorId>, at: isize) {
        self.links.extend(self.dim(tensor, at).map(Link::Fixed));
    }

    /// Links a dimension as proportional to another.
    fn each(&mut self, many: Option<Dim>, of: Option<Dim>) {
        self.links.extend(many.zip(of).map(|(many, of)| Link::Each(many, of)));
    }

    /// Links operands that are broadcast to a tensor, from the last dimension on, where sizes are equal.
    fn broadcast(&mut self, operands: &[TensorId], to: TensorId) {
        let rank = self.shape(to).len();
        for back in 1..=rank as isize {
            let Some(out) = self.dim(Some(to), -back) else { continue };
            let dims = operands.iter().filter(|&&operand| operand != to);
            let alike: SmallVec<[Dim; 2]> = dims
                .filter_map(|&operand| self.dim(Some(operand), -back))
                .filter(|&dim| self.size(dim) == self.size(out))
                .collect();
            if self.size(out) == 1 {
                self.links.push(Link::Spread(alike, out));
            } else {
                self.links.extend(alike.into_iter().map(|dim| Link::Same(dim, out)));
            }
        }
    }

    /// Default links for unknown names: all operands are broadcast to the results, and to the operand with the most dimensions.
    fn by_place_from_the_end(&mut self) {
        let operands: Vec<TensorId> =
            self.ids.takes().filter(|&tensor| !self.shape(tensor).is_empty()).collect();
        // Lists of parameters do not depend on the batch.
        if operands.len() > 64 {
            return;
        }
        let results: Vec<TensorId> = self.ids.gives().collect();
        for &result in &results {
            self.broadcast(&operands, result);
        }
        let numel =
            |&tensor: &TensorId| (self.shape(tensor).len(), self.shape(tensor).iter().product::<i64>());
        if let Some(largest) = operands.iter().copied().max_by_key(numel)
            && !results.contains(&largest)
        {
            self.broadcast(&operands, largest);
        }
    }
}
