//! Sparse tensors. Creating one and reading its parts is free; adding one to a table uses `index_add_`.

use crate::axes::count;
use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, unknown};
use crate::kernel::{Coalesce, Kernel};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read, scratch};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::nothing(&[
        "aten::sparse_coo_tensor",
        "aten::_sparse_coo_tensor_unsafe",
        "aten::_sparse_coo_tensor_with_dims",
        "aten::_sparse_coo_tensor_with_dims_and_tensors",
        "aten::_indices",
        "aten::_values",
        "aten::indices",
        "aten::values",
        "aten::_nnz",
        "aten::sparse_dim",
        "aten::dense_dim",
        "aten::_coalesced_",
        "aten::sparse_resize_",
        "aten::sparse_resize_and_clear_",
    ]),
    OpDef::composite(&[
        "aten::coalesce",
        "aten::sparse_mask",
        "aten::to_dense",
        "aten::_to_dense",
        "aten::_sparse_mm",
        "aten::_sparse_addmm",
    ]),
    OpDef::leaf(&["aten::_coalesce"], coalesce).arguments(&["self", "indices", "values"]),
];

/// Number of launches besides those that merge: flattening of indices, block sorts, search of unique indices, sums of the rows of each.
const LAUNCHES: u32 = 7;
/// Number of indices that one block sorts.
const BLOCK: u64 = 2048;

/// Returns the launches that sort the indices and add the rows of each. A recorded call has only the sparse tensor, which does not
/// have the number of its rows; a call with indices and values as further arguments does.
fn coalesce(call: &BoundCall<'_>) -> Option<Lowering> {
    let sparse = call.tensor("self")?;
    let (Some(indices), Some(values)) = (call.tensor("indices"), call.tensor("values")) else {
        return Some(unknown(call));
    };
    let lookups = values.size(0).max(0) as u64;
    let indexed = indices.size(0).max(0) as usize;
    let kernel = Kernel::Coalesce(Coalesce {
        rows: count(&sparse.shape[..indexed.min(sparse.shape.len())]),
        lookups,
        row_bytes: values.bytes() / lookups.max(1),
    });
    let operands = [
        read(call, "values"),
        read(call, "indices"),
        Some(output_bytes(0, values.bytes() + indices.bytes())),
        Some(scratch(lookups * 32)),
    ];
    // Each pass merges pairs of runs in two launches.
    let passes = lookups.div_ceil(BLOCK).max(1).next_power_of_two().ilog2();
    Some(launches(LAUNCHES + 2 * passes, kernel, values.dtype, operands, values.numel()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::OpCall;
    use crate::call::{Arg, Tensor};
    use crate::dtype::Dtype;

    #[test]
    fn a_sparse_tensor_alone_does_not_say_its_size() {
        let sparse = Tensor { strides: Default::default(), ..Tensor::contiguous(&[5000, 64], Dtype::F32) };
        let call = OpCall::new("aten::_coalesce", vec![Arg::Tensor(sparse.clone())]);
        assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)));
        let indices = Arg::Tensor(Tensor::contiguous(&[1, 2560], Dtype::I64));
        let values = Arg::Tensor(Tensor::contiguous(&[2560, 64], Dtype::F32));
        let call = OpCall::new("aten::_coalesce", vec![Arg::Tensor(sparse), indices, values]);
        let Lowering::Kernel(call) = OpSet::standard().lower(&call) else { panic!("no kernel") };
        let Kernel::Coalesce(coalesce) = call.kernel else { panic!("another kernel") };
        assert_eq!((coalesce.rows, coalesce.lookups, coalesce.row_bytes), (5000, 2560, 256));
        assert_eq!(call.launches, LAUNCHES + 2);
    }
}
