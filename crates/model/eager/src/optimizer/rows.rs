//! Sparse gradients added to a table.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{copy, sparse, views};
use crate::recorder::code;
use crate::tensor::Tensor;

/// `to.add_(x, alpha=times)`, for a dense or a sparse `x`.
pub(super) fn add_(e: &mut Eager, to: &Tensor, x: &Tensor, times: Input<'static>) {
    e.op("aten::add_.Tensor", inputs![to, x, times], |e| {
        if x.sparse.is_some() {
            e.op("aten::add.out", inputs![to, x, times, to], |e| {
                add_rows(e, to, x, times);
                to.clone()
            });
        }
        to.clone()
    });
}

fn add_rows(e: &mut Eager, to: &Tensor, x: &Tensor, times: Input<'static>) {
    let count = x.sparse.as_ref().map_or(0, |parts| parts[1].size(0));
    e.op("aten::_nnz", inputs![x], |_| Input::Int(count));
    e.op("aten::result_type.Tensor", inputs![to, x], |_| code(Dtype::F32));
    copy::to_same(e, to);
    let values = sparse::values(e, x);
    copy::to_same(e, &values);
    let indices = sparse::indices(e, x);
    e.op("aten::sparse_dim", inputs![x], |_| Input::Int(1));
    e.op("aten::is_coalesced", inputs![x], |_| Input::Bool(false));
    let rows = e.op("aten::squeeze.dim", inputs![&indices, Input::Int(0)], |e| {
        views::as_strided(e, &indices, &[count], &[1], None)
    });
    let table = views::view(e, to, &to.shape);
    let values = views::reshape(e, &values, &[count, to.size(1)]);
    e.op("aten::index_add_", inputs![&table, Input::Int(0), &rows, &values, times], |_| table.clone());
    copy::copy_(e, to, to);
}
