//! Matrix products: cuBLAS requires matrices whose rows or columns are contiguous.

use super::branch::Branch;
use super::build::row_major;
use crate::call::{OpCall, Tensor};

/// Returns copies of the two matrices from argument `first` on, if cuBLAS cannot read them directly.
pub(super) fn operands(call: &OpCall, first: usize) -> impl Iterator<Item = Branch> {
    let both = [first, first + 1].into_iter().filter_map(|at| call.tensor_at(at));
    both.filter(|matrix| !readable(matrix)).map(row_major)
}

/// Whether a matrix, or each of a batch, is row-major or column-major, possibly with gaps between rows.
fn readable(matrix: &Tensor) -> bool {
    let rank = matrix.shape.len();
    let (Some(&[rows, columns]), Some(&[down, across])) =
        (matrix.shape.last_chunk::<2>(), matrix.strides.last_chunk::<2>())
    else {
        return true;
    };
    matrix.is_contiguous()
        || (rank == 2 && matrix.is_dense())
        || (down == 1 && across >= rows.max(1))
        || (across == 1 && down >= columns.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Arg;
    use crate::dtype::Dtype::F32;

    #[test]
    fn only_what_has_no_leading_dimension_is_copied() {
        let copies = |strides: &[i64]| {
            let matrix = Tensor::strided(&[32, 64], strides, F32);
            let call = OpCall::new(
                "aten::mm",
                vec![Arg::Tensor(matrix), Arg::Tensor(Tensor::contiguous(&[64, 8], F32))],
            );
            operands(&call, 0).count()
        };
        assert_eq!([copies(&[64, 1]), copies(&[1, 32]), copies(&[100, 1]), copies(&[1, 40])], [0; 4]);
        assert_eq!([copies(&[0, 0]), copies(&[128, 2]), copies(&[1, 0])], [1; 3]);
    }
}
