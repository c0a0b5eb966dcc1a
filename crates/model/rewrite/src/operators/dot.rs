//! Dot interaction by PyTorch's ops: a product of the vectors and their transpose, its triangle, and the first vector.

use steptime_aten::{Arg, Dtype};
use steptime_step::{Call, OpId, StepIr, TensorId, Uses};

use super::index_origin::maker;
use super::lookups::tensor;

/// A dot interaction by PyTorch's ops.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    /// The vectors, `[B, F, D]`.
    pub vectors: TensorId,
    /// The same with the last two dimensions swapped.
    pub turned: TensorId,
    /// The ops from the vectors to the result, which is the output of the last.
    pub ops: Vec<OpId>,
    /// Whether the first vector is selected from the vectors.
    pub is_selected: bool,
    /// Indices that select the products.
    pub picked_by: Vec<TensorId>,
}

/// The interaction whose matrix product is this op.
pub(super) fn dot(step: &StepIr, uses: &Uses, product: OpId) -> Option<Dot> {
    let call = called(step, product, &["aten::bmm", "aten::matmul"])?;
    let (vectors, turned) = (tensor(&call.inputs, 0)?, tensor(&call.inputs, 1)?);
    let transpose = maker(step, uses, turned)?;
    let swaps = called(step, transpose, &["aten::transpose", "aten::permute", "aten::mT"])?;
    let value = &step.tensors[vectors].value;
    let [batch, count, _] = value.shape[..] else { return None };
    if tensor(&swaps.inputs, 0) != Some(vectors) || value.dtype != Dtype::F32 || !value.is_contiguous() {
        return None;
    }
    let mut ops = vec![transpose, product];
    let mut now = tensor(&call.outputs, 0)?;
    let mut picked_by = Vec::new();
    while picked_by.is_empty() {
        let next = only_user(step, uses, now)?;
        let known = ["aten::flatten", "aten::view", "aten::reshape", "aten::index", "aten::index_select"];
        let call = called(step, next, &known)?;
        if step.ops[next].name.starts_with("aten::index") {
            picked_by = call.takes().filter(|&taken| taken != now).collect();
        }
        ops.push(next);
        now = tensor(&call.outputs, 0)?;
    }
    let join = only_user(step, uses, now)?;
    let call = called(step, join, &["aten::cat"])?;
    let (Some(Arg::Tensors(list)), Some(Arg::Int(1 | -1))) = (call.inputs.first(), call.inputs.get(1)) else {
        return None;
    };
    let [first, pairs] = list[..] else { return None };
    if pairs != now || step.tensors[pairs].value.shape[..] != [batch, count.saturating_mul(count - 1) / 2] {
        return None;
    }
    let is_selected = selects(step, uses, first, vectors, &mut ops);
    if !is_selected && !leads(step, uses, first, vectors) {
        return None;
    }
    ops.push(join);
    Some(Dot { vectors, turned, ops, is_selected, picked_by })
}

/// The call of an outermost op with one of some names.
fn called<'s>(step: &'s StepIr, op: OpId, names: &[&str]) -> Option<&'s Call> {
    let row = &step.ops[op];
    let own = names.contains(&&*row.name) && step.outermost(op) == op && !row.captured;
    row.call.as_deref().filter(|_| own)
}

/// The only op of the forward pass that takes a tensor.
fn only_user(step: &StepIr, uses: &Uses, tensor: TensorId) -> Option<OpId> {
    let mut users: Vec<OpId> = uses.consumers(tensor).iter().map(|&op| step.outermost(op)).collect();
    let maker = maker(step, uses, tensor);
    users.retain(|&op| Some(op) != maker && !step.event(op).is_engine());
    users.dedup();
    if let [one] = users[..] { Some(one) } else { None }
}

/// Whether a tensor is the first of each sample's vectors, selected for this interaction only.
fn selects(step: &StepIr, uses: &Uses, first: TensorId, vectors: TensorId, ops: &mut Vec<OpId>) -> bool {
    let select = maker(step, uses, first).and_then(|op| Some((op, called(step, op, &["aten::select"])?)));
    let Some((op, call)) = select else { return false };
    let of = tensor(&call.inputs, 0) == Some(vectors);
    let at = call.inputs.get(1..3) == Some(&[Arg::Int(1), Arg::Int(0)]);
    let alone = only_user(step, uses, first).is_some();
    if of && at && alone {
        ops.push(op);
    }
    of && at && alone
}

/// Whether the vectors are views of a `cat` that begins with a tensor.
fn leads(step: &StepIr, uses: &Uses, first: TensorId, vectors: TensorId) -> bool {
    let views = ["aten::view", "aten::reshape"];
    let joined = maker(step, uses, vectors).and_then(|op| tensor(&called(step, op, &views)?.inputs, 0));
    let list = joined.and_then(|joined| called(step, maker(step, uses, joined)?, &["aten::cat"]));
    let Some(Arg::Tensors(list)) = list.and_then(|call| call.inputs.first()) else { return false };
    let widths = [first, vectors].map(|tensor| step.tensors[tensor].value.size(-1));
    list.first() == Some(&first) && widths[0] == widths[1]
}
