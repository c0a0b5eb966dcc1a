//! Known ops, one file per op, or per few related ops.
//!
//! A file lists its ops as `pub static OPS: &[OpDef]`; `FILES` lists the files.

pub mod activation;
pub mod activation_layer;
pub mod alias;
pub mod attention;
pub mod attention_layer;
pub mod batch_norm;
pub mod binary;
pub mod compare;
pub mod compiled_pointwise;
pub mod concat;
pub mod convolution;
pub mod convolution_backward;
pub mod convolution_layer;
pub mod copy;
pub mod cross_entropy;
pub mod embedding;
pub mod embedding_bag;
pub mod embedding_bag_backward;
pub mod fill;
pub mod fused_bags;
pub mod gather;
pub mod gemm;
pub mod gradients;
pub mod in_place;
pub mod index;
pub mod index_put;
pub mod interaction;
pub mod layers;
pub mod linear;
pub mod loss;
pub mod loss_layer;
pub mod multi_tensor;
#[cfg(test)]
mod names;
pub mod norm;
pub mod norm_layer;
pub mod pointwise;
pub mod pool;
pub mod pool_layer;
pub mod random;
pub mod rearrange;
pub mod reduce;
pub mod resample;
pub mod reshape;
pub mod rnn;
pub mod scan;
pub mod scatter;
pub mod softmax;
pub mod sort;
pub mod sparse;
pub mod table_batched;
pub mod ternary;
pub mod tiled_gather;
pub mod unary;
pub mod view_gradients;
pub mod views;

use std::sync::LazyLock;

use crate::op_def::OpDef;
use crate::op_set::{OpSet, Table};

/// Tables of all files in this folder, one per line.
static FILES: &[&[OpDef]] = &[
    alias::COMBINED,
    alias::OPS,
    attention_layer::OPS,
    activation_layer::OPS,
    pool_layer::OPS,
    loss_layer::OPS,
    norm_layer::OPS,
    convolution_layer::OPS,
    linear::OPS,
    embedding_bag::OPS,
    embedding_bag_backward::OPS,
    embedding::OPS,
    gather::OPS,
    index::OPS,
    index_put::OPS,
    scatter::OPS,
    reduce::OPS,
    scan::OPS,
    sort::OPS,
    concat::OPS,
    copy::OPS,
    reshape::OPS,
    view_gradients::OPS,
    views::OPS,
    multi_tensor::OPS,
    rearrange::OPS,
    sparse::OPS,
    table_batched::OPS,
    fused_bags::OPS,
    tiled_gather::OPS,
    interaction::OPS,
    cross_entropy::OPS,
    in_place::OPS,
    compiled_pointwise::OPS,
    multi_tensor::OTHERS,
    table_batched::OTHERS,
    layers::OPS,
    rnn::OPS,
    attention::OPS,
    resample::OPS,
    pool::OPS,
    loss::OPS,
    norm::OPS,
    batch_norm::OPS,
    softmax::OPS,
    random::OPS,
    fill::OPS,
    activation::OPS,
    ternary::OPS,
    compare::OPS,
    binary::OPS,
    unary::OPS,
    convolution::OPS,
    convolution_backward::OPS,
    gemm::OPS,
];

static STANDARD: LazyLock<Table> = LazyLock::new(|| Table::new(FILES));

impl OpSet {
    /// Returns the set of the ops of PyTorch and of this project.
    #[must_use]
    pub fn standard() -> OpSet {
        OpSet::from_table(&STANDARD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arg, Device, Dtype, Lowering, OpCall, Tensor};

    #[test]
    fn no_name_is_listed_twice() {
        let ops = OpSet::standard();
        let mut names: Vec<_> = ops.iter().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn work_on_host_tensors_launches_nothing() {
        let mut tensor = Tensor::contiguous(&[8], Dtype::F32);
        tensor.device = Device::Cpu;
        let call = OpCall::new("aten::relu", vec![Arg::Tensor(tensor)]);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Nothing);
    }

    #[test]
    fn an_op_that_is_added_counts_before_the_one_of_its_name() {
        let call = OpCall::new("aten::relu", vec![Arg::Tensor(Tensor::contiguous(&[8], Dtype::F32))]);
        let ops = OpSet::standard();
        assert_eq!(ops.lower(&call), Lowering::Children);
        let silent = ops.clone().with(OpDef::nothing(&["aten::relu", "mine::silent"]));
        assert_eq!(silent.lower(&call), Lowering::Nothing);
        assert!(silent.find("mine::silent").is_some() && ops.find("mine::silent").is_none());
    }
}
