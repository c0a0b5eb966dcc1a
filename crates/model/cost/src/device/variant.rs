//! Variants of calls within a family: calls of one variant have similar errors.

use steptime_aten::kernel::{
    AttentionKind, GatherKind, Layout, NormKind, Pass, PoolKind, RowOptimizer, ScatterKind,
};
use steptime_aten::{Kernel, KernelCall};

/// Returns the name of a call's variant: an op or pass, and the type, such as `add:f32`.
#[must_use]
pub fn variant(call: &KernelCall) -> String {
    format!("{}:{}", operation(&call.kernel), call.dtype.name())
}

/// Returns the op if the family has many, else the pass or kind; `all` for a family whose calls do not differ.
fn operation(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Gemm(gemm) => match gemm.precision {
            steptime_aten::kernel::Precision::Tf32 => "tf32",
            _ if gemm.batch > 1 => "batched",
            _ => "single",
        },
        Kernel::Conv(conv) => match (conv.gradients, conv.groups > 1) {
            (None, false) => "forward",
            (None, true) => "grouped",
            (Some([true, false, _]), false) => "input_gradient",
            (Some([false, true, _]), false) => "weight_gradient",
            (Some(_), false) => "backward",
            (Some(_), true) => "grouped_backward",
        },
        Kernel::Attention(attention) => match (attention.kind, attention.pass) {
            (AttentionKind::Flash, Pass::Forward) => "flash",
            (AttentionKind::Flash, Pass::Backward) => "flash_backward",
            (AttentionKind::Efficient, Pass::Forward) => "efficient",
            (AttentionKind::Efficient, Pass::Backward) => "efficient_backward",
            (AttentionKind::Cudnn, Pass::Forward) => "cudnn",
            (AttentionKind::Cudnn, Pass::Backward) => "cudnn_backward",
        },
        Kernel::Rnn(rnn) => pass(rnn.pass),
        Kernel::EmbeddingBag(bag) => pass(bag.pass),
        Kernel::TableBatched(tables) => pass(tables.pass),
        Kernel::FusedBags(bags) => match bags.update {
            // The type is that of bytes: of eight bits, or of two times four.
            None if bags.element_bits == 4 => "forward_int4",
            None => "forward",
            Some(RowOptimizer::Sgd) => "sgd",
            Some(RowOptimizer::RowWiseAdagrad) => "rowwise_adagrad",
            Some(RowOptimizer::Adagrad) => "adagrad",
            Some(RowOptimizer::Adam) => "adam",
            Some(RowOptimizer::PartialRowWiseAdam) => "partial_rowwise_adam",
            Some(RowOptimizer::Other) => "other",
        },
        Kernel::TiledGather(gather) => {
            if gather.slice == 0 {
                "rows"
            } else {
                "columns"
            }
        }
        Kernel::Interaction(interaction) => pass(interaction.pass),
        Kernel::SparseProduct(_) => "sparse",
        Kernel::Gather(gather) => match gather.kind {
            GatherKind::Gather => "gather",
            GatherKind::IndexSelect => "index_select",
            GatherKind::Index => "index",
            GatherKind::Other => "other",
        },
        Kernel::Scatter(scatter) => match scatter.kind {
            ScatterKind::IndexAdd => "index_add",
            ScatterKind::Scatter => "scatter",
            ScatterKind::IndexPut => "index_put",
            ScatterKind::IndexPutAccumulate => "index_put_accumulate",
            ScatterKind::EmbeddingDense => "embedding_dense",
            ScatterKind::Other => "other",
        },
        Kernel::Coalesce(_) => "coalesce",
        Kernel::Elementwise(elementwise) => elementwise.op,
        Kernel::Reduce(reduce) => reduce.op,
        Kernel::Scan(sort) | Kernel::Sort(sort) => sort.op,
        Kernel::Softmax(softmax) => pass(softmax.pass),
        Kernel::Norm(norm) => match (norm.kind, norm.pass) {
            (NormKind::Layer, Pass::Forward) => "layer",
            (NormKind::Layer, Pass::Backward) => "layer_backward",
            (NormKind::Rms, Pass::Forward) => "rms",
            (NormKind::Rms, Pass::Backward) => "rms_backward",
            (NormKind::Group, Pass::Forward) => "group",
            (NormKind::Group, Pass::Backward) => "group_backward",
        },
        Kernel::BatchNorm(norm) => pass(norm.pass),
        Kernel::Pool(pool) => match (pool.kind, pool.pass) {
            (PoolKind::Max, Pass::Forward) => "max",
            (PoolKind::Max, Pass::Backward) => "max_backward",
            (PoolKind::Average, Pass::Forward) => "average",
            (PoolKind::Average, Pass::Backward) => "average_backward",
            (PoolKind::Adaptive, Pass::Forward) => "adaptive",
            (PoolKind::Adaptive, Pass::Backward) => "adaptive_backward",
            (PoolKind::Resample, Pass::Forward) => "resample",
            (PoolKind::Resample, Pass::Backward) => "resample_backward",
        },
        Kernel::Loss(loss) => pass(loss.pass),
        Kernel::MultiTensor(list) => list.op,
        Kernel::Transfer(transfer) => {
            if transfer.pinned {
                "pinned"
            } else {
                "pageable"
            }
        }
        _ => "all",
    }
}

const fn pass(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "forward",
        Pass::Backward => "backward",
    }
}

/// Whether a call is a transpose or permutation: a strided copy of one tensor.
#[must_use]
pub fn is_permutation(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Elementwise(e)
        if e.inputs == 1 && matches!(e.op, "copy" | "copy_" | "clone") && matches!(e.layout, Layout::Strided { .. }))
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use steptime_aten::Dtype;
    use steptime_aten::kernel::{Elementwise, Steps, Work};

    use super::*;

    #[test]
    fn an_op_and_its_type() {
        let layout =
            Layout::Strided { dims: 2, run_in: 1, run_out: 64, broadcast: false, steps: Steps::default() };
        let kernel =
            Kernel::Elementwise(Elementwise { op: "copy_", work: Work::Light, numel: 64, inputs: 1, layout });
        let call = KernelCall { kernel, dtype: Dtype::Bf16, operands: smallvec![], flops: 0, launches: 1 };
        assert_eq!(variant(&call), "copy_:bf16");
        assert!(is_permutation(&call.kernel));
        assert!(!is_permutation(&Kernel::Memset));
    }
}
