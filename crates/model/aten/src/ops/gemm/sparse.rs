//! Product of a sparse matrix and a dense one, by cuSPARSE. A call has the sparse matrix as a tensor without the number of its
//! entries; its indices and values follow the arguments if they are known.

use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, result};
use crate::call::Tensor;
use crate::kernel::{Kernel, SparseProduct};
use crate::op_def::Lowering;
use crate::operands::read_at;

/// Number of launches: counting of rows, partitioning, scaling of the result, product.
const LAUNCHES: u32 = 4;

/// Returns the launches of `sparse x dense`, with indices and values as inputs from position `parts` on.
pub(super) fn lower(call: &BoundCall<'_>, sparse: &Tensor, dense: &Tensor, parts: usize) -> Option<Lowering> {
    let (indices, values) = (call.tensor_at(parts)?, call.tensor_at(parts + 1)?);
    let [rows, inner] = sparse.shape[..] else { return None };
    let columns = *dense.shape.get(1)?;
    let entries = values.size(0).max(0) as u64;
    let kernel = Kernel::SparseProduct(SparseProduct {
        rows: rows.max(0) as u64,
        inner: inner.max(0) as u64,
        columns: columns.max(0) as u64,
        entries,
        index_bytes: indices.dtype.size(),
    });
    let product = result(call, 0, &[rows, columns], dense.dtype);
    let at = (0..call.inputs.len())
        .find(|&at| call.tensor_at(at).is_some_and(|tensor| std::ptr::eq(tensor, dense)))?;
    let operands = [read_at(call, at), read_at(call, parts), read_at(call, parts + 1), Some(product)];
    let flops = entries.saturating_mul(columns.max(0) as u64).saturating_mul(2);
    Some(launches(LAUNCHES, kernel, dense.dtype, operands, flops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::{Arg, OpCall};
    use crate::dtype::Dtype;

    #[test]
    fn entries_of_a_sparse_matrix_are_behind_the_arguments() {
        let sparse = Tensor { strides: Default::default(), ..Tensor::contiguous(&[5000, 3000], Dtype::F32) };
        let dense = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, Dtype::F32));
        let zeros = [Arg::Int(0), Arg::Int(1)];
        let lowered = |inputs: &[Arg]| OpSet::standard().lower(&OpCall::new("aten::addmm", inputs.to_vec()));
        let mut inputs = vec![dense(&[5000, 64]), Arg::Tensor(sparse), dense(&[3000, 64])];
        inputs.extend(zeros);
        assert!(matches!(lowered(&inputs), Lowering::Unknown(_)));
        inputs.push(Arg::Tensor(Tensor::contiguous(&[2, 40_000], Dtype::I64)));
        inputs.push(dense(&[40_000]));
        let Lowering::Kernel(call) = lowered(&inputs) else { panic!("no kernel") };
        let Kernel::SparseProduct(product) = call.kernel else { panic!("another kernel") };
        assert_eq!((product.rows, product.inner, product.columns, product.entries), (5000, 3000, 64, 40_000));
        assert_eq!(call.flops, 2 * 40_000 * 64);
    }

    #[test]
    fn mm_of_a_sparse_matrix_is_what_it_calls() {
        let sparse = Tensor { strides: Default::default(), ..Tensor::contiguous(&[5000, 3000], Dtype::F32) };
        let dense = Tensor::contiguous(&[3000, 64], Dtype::F32);
        let call = OpCall::new("aten::mm", vec![Arg::Tensor(sparse), Arg::Tensor(dense)]);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Children);
    }
}
