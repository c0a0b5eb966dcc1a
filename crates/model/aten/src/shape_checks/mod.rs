//! Checks that the shapes of a call fit each other, as PyTorch would before it launches anything.
//!
//! One table: names of ops and the rule for their shapes. Ops without a rule always pass.

mod broadcast;
mod concat;
mod layers;
mod lookups;
mod products;
#[cfg(test)]
mod tests;

use crate::call::{Arg, OpCall, Tensor};

/// Reason why the shapes of a call do not fit each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {what}; {remedy}")]
pub struct Misfit {
    /// Name of the op.
    pub op: String,
    /// Mismatch, with the shapes.
    pub what: String,
    /// Remedy for the user.
    pub remedy: String,
}

/// Mismatch, and the remedy.
type Complaint = (String, String);
/// Rule for the arguments of a call.
type Rule = fn(&OpCall) -> Result<(), Complaint>;

static RULES: &[(&[&str], Rule)] = &[
    (&["mm"], products::mm),
    (&["addmm", "addmm_"], products::addmm),
    (&["bmm"], products::bmm),
    (&["baddbmm", "baddbmm_"], products::baddbmm),
    (&["matmul"], products::matmul),
    (&["mv"], products::mv),
    (&["linear"], products::linear),
    (
        &[
            "scaled_dot_product_attention",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_efficient_attention",
        ],
        products::attention,
    ),
    (&["conv1d", "conv2d", "conv3d"], layers::conv),
    (&["convolution", "_convolution"], layers::convolution),
    (&["batch_norm", "native_batch_norm", "cudnn_batch_norm"], layers::batch_norm),
    (&["layer_norm", "native_layer_norm"], layers::layer_norm),
    (&["group_norm"], layers::group_norm),
    (&["nll_loss", "nll_loss_nd", "cross_entropy_loss"], layers::class_loss),
    (
        &["softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "sort", "argmax", "topk"],
        layers::one_dimension,
    ),
    (&["embedding"], lookups::embedding),
    (&["embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"], lookups::embedding_bag),
    (&["index_select"], lookups::index_select),
    (&["gather"], lookups::gather),
    (&["cat", "concat"], concat::cat),
    (&["stack"], concat::stack),
    (
        &[
            "add",
            "sub",
            "mul",
            "div",
            "maximum",
            "minimum",
            "pow",
            "atan2",
            "fmod",
            "remainder",
            "floor_divide",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "where",
            "addcmul",
            "addcdiv",
            "lerp",
            "masked_fill",
            "mse_loss",
            "binary_cross_entropy",
            "binary_cross_entropy_with_logits",
            "smooth_l1_loss",
            "rsub",
        ],
        broadcast::together,
    ),
    (
        &[
            "add_",
            "sub_",
            "mul_",
            "div_",
            "pow_",
            "addcmul_",
            "addcdiv_",
            "lerp_",
            "masked_fill_",
            "bitwise_and_",
            "copy_",
        ],
        broadcast::in_place,
    ),
];

/// Checks a call.
///
/// # Errors
/// Names the op, the shapes that do not fit each other, and the remedy.
pub fn check(call: &OpCall) -> Result<(), Misfit> {
    let Some(name) = call.name.strip_prefix("aten::") else { return Ok(()) };
    let Some((_, rule)) = RULES.iter().find(|(names, _)| names.contains(&name)) else { return Ok(()) };
    rule(call).map_err(|(what, remedy)| Misfit { op: call.name.clone(), what, remedy })
}

/// Returns an error if a condition does not hold.
fn must(
    holds: bool,
    what: impl FnOnce() -> String,
    remedy: impl FnOnce() -> String,
) -> Result<(), Complaint> {
    if holds { Ok(()) } else { Err((what(), remedy())) }
}

/// Formats a shape, `[512, 511]`.
fn shown(tensor: &Tensor) -> String {
    listed(&tensor.shape)
}

fn listed(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// Returns the tensor of an argument, if it is one.
fn tensor(call: &OpCall, arg: usize) -> Option<&Tensor> {
    match call.inputs.get(arg) {
        Some(Arg::Tensor(tensor)) => Some(tensor),
        _ => None,
    }
}

/// Checks the number of dimensions.
fn rank(name: &str, tensor: &Tensor, expected: usize) -> Result<(), Complaint> {
    must(
        tensor.shape.len() == expected,
        || {
            format!(
                "{name} {} has {} dimensions, and must have {expected}",
                shown(tensor),
                tensor.shape.len()
            )
        },
        || format!("give {name} {expected} sizes"),
    )
}

/// Resolves a dimension, which must exist.
fn dimension(tensor: &Tensor, dim: i64) -> Result<usize, Complaint> {
    crate::axes::axis(dim, tensor.shape.len()).ok_or_else(|| {
        (
            format!("{} has no dimension {dim}", shown(tensor)),
            format!("it has {}, counted from 0 or, from the end, -1", tensor.shape.len().max(1)),
        )
    })
}

/// Returns the shape that two shapes broadcast to, from the last dimension on.
fn broadcast(one: &[i64], two: &[i64]) -> Option<Vec<i64>> {
    let rank = one.len().max(two.len());
    let size = |shape: &[i64], at: usize| (at + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    (0..rank)
        .map(|at| match (size(one, at), size(two, at)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}
