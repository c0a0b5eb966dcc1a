//! Kernel families, one file each: their features, and the models that need no learning.
//!
//! A time is the launch floor, plus the latency of the first bytes, plus the longer of moving the data and
//! computing with it. The context splits the moved bytes into those from device memory and those that are
//! still in the cache. The first feature of every family is the logarithm of that time in nanoseconds.

mod attention;
mod batch_norm;
mod bytes_only;
mod coalesce;
mod concat;
mod conv;
mod elementwise;
mod embedding_bag;
#[cfg(test)]
pub(super) mod fixture;
mod fused_bags;
mod gather;
mod gemm;
mod interaction;
mod lookups;
mod loss;
pub(super) mod memory;
mod multi_tensor;
mod norm;
mod opcode;
mod pool;
mod reduce;
mod repeated_reads;
mod rnn;
mod rows;
mod scatter;
mod shared;
mod softmax;
mod sort;
mod sparse_product;
mod streams;
mod table_batched;
#[cfg(test)]
mod tests;
mod tile_choice;
mod tiled_gather;
mod tiles;
mod times;
mod transfer;

use steptime_aten::Kernel;

use super::family::Family;

/// All families.
pub const ALL: [&dyn Family; 28] = [
    &gemm::Gemm,
    &conv::Conv,
    &attention::Attentions,
    &rnn::Rnn,
    &interaction::Interactions,
    &embedding_bag::Bags,
    &table_batched::BatchedTables,
    &fused_bags::Fused,
    &gather::Gathers,
    &tiled_gather::TiledGathers,
    &scatter::Scatters,
    &elementwise::Elementwise,
    &reduce::Reductions,
    &sort::Sort,
    &sort::Sorts,
    &softmax::Softmaxes,
    &norm::Norms,
    &batch_norm::BatchNorms,
    &pool::Pools,
    &loss::Losses,
    &concat::Concats,
    &multi_tensor::MultiTensors,
    &transfer::Transfers,
    &bytes_only::DEVICE_COPY,
    &bytes_only::MEMSET,
    &bytes_only::UNKNOWN,
    &sparse_product::SparseProducts,
    &coalesce::Coalesced,
];

/// Returns the family of a kernel.
#[must_use]
pub fn find(kernel: &Kernel) -> &'static dyn Family {
    match kernel {
        Kernel::Gemm(_) => &gemm::Gemm,
        Kernel::Conv(_) => &conv::Conv,
        Kernel::Attention(_) => &attention::Attentions,
        Kernel::Rnn(_) => &rnn::Rnn,
        Kernel::Interaction(_) => &interaction::Interactions,
        Kernel::SparseProduct(_) => &sparse_product::SparseProducts,
        Kernel::EmbeddingBag(_) => &embedding_bag::Bags,
        Kernel::TableBatched(_) => &table_batched::BatchedTables,
        Kernel::FusedBags(_) => &fused_bags::Fused,
        Kernel::Gather(_) => &gather::Gathers,
        Kernel::TiledGather(_) => &tiled_gather::TiledGathers,
        Kernel::Scatter(_) => &scatter::Scatters,
        Kernel::Coalesce(_) => &coalesce::Coalesced,
        Kernel::Elementwise(_) => &elementwise::Elementwise,
        Kernel::Reduce(_) => &reduce::Reductions,
        Kernel::Scan(_) => &sort::Sort,
        Kernel::Sort(_) => &sort::Sorts,
        Kernel::Softmax(_) => &softmax::Softmaxes,
        Kernel::Norm(_) => &norm::Norms,
        Kernel::BatchNorm(_) => &batch_norm::BatchNorms,
        Kernel::Pool(_) => &pool::Pools,
        Kernel::Loss(_) => &loss::Losses,
        Kernel::Concat(_) => &concat::Concats,
        Kernel::MultiTensor(_) => &multi_tensor::MultiTensors,
        Kernel::Transfer(_) => &transfer::Transfers,
        Kernel::DeviceCopy => &bytes_only::DEVICE_COPY,
        Kernel::Memset => &bytes_only::MEMSET,
        Kernel::Unknown => &bytes_only::UNKNOWN,
    }
}

/// Returns the family of a name, as written by [`Kernel::family`].
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Family> {
    ALL.into_iter().find(|family| family.name() == name)
}

/// Writes [further features](Family::more) of a call that has none of them.
fn blank_more(family: &dyn Family, out: &mut Vec<f32>) {
    out.extend(family.more_names().iter().map(|_| f32::NAN));
}

/// Writes features of a call of another family: none has a value.
fn blank(family: &dyn Family, out: &mut Vec<f32>) {
    out.extend(family.feature_names().iter().map(|_| f32::NAN));
}
