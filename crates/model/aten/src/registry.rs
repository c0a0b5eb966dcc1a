//! The list of known ops, and look-ups in it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::call::{Arg, Device, OpCall, Tensor};
use crate::fallback;
use crate::ops::{Lowered, OpDef};

/// Every file under `ops/`, one line each.
static FILES: &[&[OpDef]] = &[
    crate::ops::alias::COMBINED,
    crate::ops::alias::OPS,
    crate::ops::attention_layer::OPS,
    crate::ops::activation_layer::OPS,
    crate::ops::pool_layer::OPS,
    crate::ops::loss_layer::OPS,
    crate::ops::norm_layer::OPS,
    crate::ops::convolution_layer::OPS,
    crate::ops::linear::OPS,
    crate::ops::embedding_bag::OPS,
    crate::ops::embedding::OPS,
    crate::ops::gather::OPS,
    crate::ops::index::OPS,
    crate::ops::index_put::OPS,
    crate::ops::scatter::OPS,
    crate::ops::reduce::OPS,
    crate::ops::scan::OPS,
    crate::ops::sort::OPS,
    crate::ops::concat::OPS,
    crate::ops::copy::OPS,
    crate::ops::reshape::OPS,
    crate::ops::view_gradients::OPS,
    crate::ops::views::OPS,
    crate::ops::multi_tensor::OPS,
    crate::ops::rearrange::OPS,
    crate::ops::sparse::OPS,
    crate::ops::table_batched::OPS,
    crate::ops::fused_bags::OPS,
    crate::ops::tiled_gather::OPS,
    crate::ops::interaction::OPS,
    crate::ops::multi_tensor::OTHERS,
    crate::ops::table_batched::OTHERS,
    crate::ops::layers::OPS,
    crate::ops::rnn::OPS,
    crate::ops::attention::OPS,
    crate::ops::resample::OPS,
    crate::ops::pool::OPS,
    crate::ops::loss::OPS,
    crate::ops::norm::OPS,
    crate::ops::batch_norm::OPS,
    crate::ops::softmax::OPS,
    crate::ops::random::OPS,
    crate::ops::fill::OPS,
    crate::ops::activation::OPS,
    crate::ops::ternary::OPS,
    crate::ops::compare::OPS,
    crate::ops::binary::OPS,
    crate::ops::unary::OPS,
    crate::ops::convolution::OPS,
    crate::ops::convolution_backward::OPS,
    crate::ops::gemm::OPS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static OpDef>> = LazyLock::new(|| {
    let all = FILES.iter().flat_map(|file| file.iter());
    all.flat_map(|op| op.names.iter().map(move |&name| (name, op))).collect()
});

/// What is known of an op.
#[must_use]
pub fn find(name: &str) -> Option<&'static OpDef> {
    BY_NAME.get(name).copied()
}

/// Every known op.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FILES.iter().flat_map(|file| file.iter())
}

/// What a call launches by itself. An unknown op is priced by its bytes; one without any tensor on the device
/// launches nothing.
#[must_use]
pub fn lower(call: &OpCall) -> Lowered {
    if on_host(call) {
        return Lowered::Nothing;
    }
    find(&call.name).map_or_else(|| fallback::lower(call), |op| (op.lower)(call))
}

/// What a call gives: as recorded, else by the op's shape rule.
#[must_use]
pub fn outputs(call: &OpCall) -> Option<Vec<Arg>> {
    if !call.outputs.is_empty() {
        return Some(call.outputs.clone());
    }
    find(&call.name)?.outputs?(call)
}

/// The ops that a call calls in turn; none where it is a leaf, or they are not known.
#[must_use]
pub fn expand(call: &OpCall) -> Vec<OpCall> {
    find(&call.name).and_then(|op| op.expand).map_or_else(Vec::new, |rule| rule(call))
}

/// Whether all tensors of a call lie in host memory.
fn on_host(call: &OpCall) -> bool {
    let host = |tensor: &Tensor| matches!(tensor.device, Device::Cpu | Device::Pinned);
    let mut all = call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors).peekable();
    all.peek().is_some() && all.all(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_listed_twice() {
        let mut names: Vec<_> = all().flat_map(|op| op.names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn work_on_host_tensors_launches_nothing() {
        let mut tensor = Tensor::contiguous(&[8], crate::Dtype::F32);
        tensor.device = Device::Cpu;
        let call = OpCall::new("aten::relu", vec![Arg::Tensor(tensor)]);
        assert_eq!(lower(&call), Lowered::Nothing);
    }
}
