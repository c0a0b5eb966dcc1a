//! The backward functions of a dot interaction by PyTorch's ops.

use steptime_step::{Call, OpId, Patch, StepIr, TensorId, Uses};

use super::dot::Dot;
use super::index_origin::{self, maker};

/// The functions, with their incoming and outgoing gradients.
pub(super) struct Backward {
    /// In execution order.
    pub functions: Vec<OpId>,
    /// The gradient of the result.
    pub comes: TensorId,
    /// The gradient of the vectors.
    pub gives: TensorId,
    /// The op that adds the gradient of the first vector to that of all vectors, where there is one.
    adds: Option<OpId>,
    /// The gradient of the first vector.
    first: Option<TensorId>,
}

/// The function of the matrix product.
fn product(step: &StepIr, uses: &Uses, dot: &Dot) -> Option<OpId> {
    let takes = uses.consumers(dot.vectors).iter().chain(uses.consumers(dot.turned));
    let mut roots = takes.map(|&op| step.outermost(op));
    roots.find(|&root| step.ops[root].name.ends_with("BmmBackward0"))
}

/// Whether there is a backward pass.
pub(super) fn is_trained(step: &StepIr, uses: &Uses, dot: &Dot) -> bool {
    product(step, uses, dot).is_some()
}

/// The functions; `None` where the gradients take an unknown path.
pub(super) fn find(step: &StepIr, uses: &Uses, dot: &Dot) -> Option<Backward> {
    let mut functions = vec![product(step, uses, dot)?];
    // From the product back to the incoming gradient of the result.
    let comes = loop {
        let comes = index_origin::gradient(step, uses, *functions.last()?)?;
        let root = functions.last().map(|&root| &*step.ops[root].name)?;
        if root.ends_with("CatBackward0") {
            break comes;
        }
        let before = maker(step, uses, comes)?;
        let known = [
            "ViewBackward0",
            "ReshapeAliasBackward0",
            "IndexBackward0",
            "IndexSelectBackward0",
            "CatBackward0",
        ];
        known.iter().any(|known| step.ops[before].name.ends_with(known)).then(|| functions.push(before))?;
    };
    functions.reverse();
    onwards(step, uses, &mut functions);
    let (gives, first) = leaves(step, uses, dot, &functions)?;
    let adds = match first {
        Some(first) => Some(adds(step, uses, first)?),
        None => None,
    };
    Some(Backward { functions, comes, gives, adds, first })
}

/// Outputs of functions.
fn outputs(step: &StepIr, functions: &[OpId]) -> Vec<TensorId> {
    let ops = functions.iter().flat_map(|&root| step.subtree(root));
    ops.filter_map(|op| step.ops[op].call.as_deref()).flat_map(Call::gives).collect()
}

/// Adds the later functions of the transpose and of the first vector.
fn onwards(step: &StepIr, uses: &Uses, functions: &mut Vec<OpId>) {
    let known = ["TransposeBackward0", "PermuteBackward0", "SelectBackward0"];
    let given = outputs(step, functions);
    let after = given.iter().flat_map(|&tensor| uses.consumers(tensor)).map(|&op| step.outermost(op));
    let after = after.filter(|&root| known.iter().any(|known| step.ops[root].name.ends_with(known)));
    for root in after.collect::<Vec<OpId>>() {
        if !functions.contains(&root) {
            functions.push(root);
        }
    }
}

/// The gradient of the vectors, and that of the first vector where it is separate.
fn leaves(step: &StepIr, uses: &Uses, dot: &Dot, functions: &[OpId]) -> Option<(TensorId, Option<TensorId>)> {
    let outside = |op: OpId| !functions.iter().any(|&root| step.is_within(op, root));
    let mut leaving: Vec<TensorId> = outputs(step, functions);
    leaving.retain(|&tensor| {
        let makes = uses.producer(tensor).is_some_and(|maker| !outside(maker));
        makes && uses.consumers(tensor).iter().any(|&op| outside(op))
    });
    leaving.sort_unstable();
    leaving.dedup();
    let shape = &step.tensors[dot.vectors].value.shape;
    let (gives, others): (Vec<TensorId>, Vec<TensorId>) =
        leaving.into_iter().partition(|&tensor| step.tensors[tensor].value.shape == *shape);
    match (&gives[..], &others[..], dot.is_selected) {
        (&[gives], [], true) => Some((gives, None)),
        (&[gives], &[first], false) => Some((gives, Some(first))),
        _ => None,
    }
}

/// The op that adds a gradient to another.
fn adds(step: &StepIr, uses: &Uses, gradient: TensorId) -> Option<OpId> {
    let mut users = uses.consumers(gradient).iter().copied();
    users.find(|&op| matches!(&*step.ops[op].name, "aten::add" | "aten::add_"))
}

impl Backward {
    /// Removes the addition of a separate gradient of the first vector.
    pub fn bypass(&self, uses: &Uses, patch: &mut Patch, step: &StepIr) {
        let (Some(op), Some(first)) = (self.adds, self.first) else { return };
        let Some(call) = &step.ops[op].call else { return };
        let sum = call.gives().next().or_else(|| call.takes().next());
        let other = call.takes().find(|&taken| taken != first);
        let (Some(sum), Some(other)) = (sum, other) else { return };
        patch.remove.push(op);
        if sum == other {
            return;
        }
        for &user in uses.consumers(sum) {
            let gone = user == op || self.functions.iter().any(|&root| step.is_within(user, root));
            if let (false, Some(call)) = (gone, &step.ops[user].call) {
                let replaced = call.with(&mut |tensor| if tensor == sum { other } else { tensor });
                patch.change.push((user, replaced));
            }
        }
    }
}
