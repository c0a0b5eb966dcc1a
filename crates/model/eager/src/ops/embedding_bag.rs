//! Embedding bags: looked-up rows of a table, pooled by bag.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{copy, fill, reduce, sparse, views};
use crate::tensor::Tensor;

/// Pooling of a bag, and form of its gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bags {
    /// Whether rows are averaged instead of summed.
    pub(crate) mean: bool,
    /// Whether the gradient holds only the looked-up rows.
    pub(crate) sparse: bool,
}

/// Lookups of a row that are summed in one segment of a dense gradient.
const SEGMENT: i64 = 10;

/// Pools the bags of a table `[rows, columns]`: lookups `[n]`, and offsets of bags `[bags]`.
pub(crate) fn embedding_bag(
    e: &mut Eager,
    table: &Tensor,
    lookups: &Tensor,
    offsets: &Tensor,
    of: Bags,
) -> Tensor {
    let mode = Input::Int(i64::from(of.mean));
    let (none, padding) = (Input::None, Input::Int(-1));
    let list = inputs![table, lookups, offsets, false, mode, of.sparse, none, false, none];
    let [sums, ..] = e.composite("aten::embedding_bag.padding_idx", list, |e| {
        let list = inputs![table, lookups, offsets, false, mode, of.sparse, Input::Undefined, false, padding];
        let [sums, bag, size, largest] = e.op("aten::_embedding_bag", list, |e| {
            let size = fill::empty(e, &[offsets.size(0)], Dtype::I64, none);
            let bag = fill::empty(e, &[lookups.size(0)], Dtype::I64, none);
            let sums = fill::empty(e, &[offsets.size(0), table.size(1)], table.dtype, none);
            let largest = fill::empty(e, &[0], Dtype::I64, none);
            [sums, bag, size, largest]
        });
        let kept = SavedTensors {
            lookups: lookups.clone(),
            offsets: offsets.clone(),
            bag: bag.clone(),
            size: size.clone(),
            largest: largest.clone(),
            rows: table.size(0),
            of,
        };
        let backward = move |e: &mut Eager, grad: &Tensor, _: &[bool]| vec![Some(kept.backward(e, grad))];
        [e.track(sums, "EmbeddingBagBackward0", &[table], backward), bag, size, largest]
    });
    sums
}

/// Tensors saved for the backward pass.
struct SavedTensors {
    lookups: Tensor,
    offsets: Tensor,
    /// The bag of each lookup.
    bag: Tensor,
    /// Number of lookups in each bag.
    size: Tensor,
    largest: Tensor,
    rows: i64,
    of: Bags,
}

impl SavedTensors {
    fn backward(&self, e: &mut Eager, grad: &Tensor) -> Tensor {
        let SavedTensors { lookups, offsets, bag, size, largest, rows, of } = self;
        let (mode, padding, left_out) = (Input::Int(i64::from(of.mean)), Input::Int(-1), Input::Undefined);
        let list = inputs![
            grad, lookups, offsets, bag, size, largest, *rows, false, mode, of.sparse, left_out, padding
        ];
        e.op("aten::_embedding_bag_backward", list, |e| {
            if of.sparse {
                let list = inputs![grad, lookups, offsets, bag, size, *rows, false, mode, left_out, padding];
                return e.op("aten::_embedding_bag_sparse_backward", list, |e| self.sparse(e, grad));
            }
            let grad = &views::contiguous_of(e, grad);
            let list = inputs![grad, lookups, bag, size, largest, *rows, false, mode, left_out, padding];
            e.op("aten::_embedding_bag_dense_backward", list, |e| self.dense(e, grad))
        })
    }

    /// The sparse gradient: for each lookup, the row of its bag.
    fn sparse(&self, e: &mut Eager, grad: &Tensor) -> Tensor {
        let mut of_lookups = rows_of(e, grad, &self.bag);
        if self.of.mean {
            of_lookups = self.averaged(e, of_lookups);
        }
        let (rows, columns) = (self.rows, grad.size(1));
        let list = inputs![&of_lookups, &self.lookups, rows, Input::Int(-1), false];
        e.op("aten::embedding_sparse_backward", list, |e| {
            let indices = views::reshape(e, &self.lookups, &[1, -1]);
            let values = views::reshape(e, &of_lookups, &[-1, columns]);
            copy::to_same(e, &indices);
            sparse::coo(e, indices, values, &[rows, columns], false)
        })
    }

    /// Divides rows by the number of lookups in their bag.
    fn averaged(&self, e: &mut Eager, rows: Tensor) -> Tensor {
        let count = e.op("aten::index_select", inputs![&self.size, Input::Int(0), &self.bag], |e| {
            fill::empty_then_resized(e, &self.bag.shape, Dtype::I64)
        });
        let column = views::unsqueeze(e, &count, 1);
        e.op("aten::div_.Tensor", inputs![&rows, &column], |_| rows.clone())
    }

    /// The dense gradient: lookups are sorted, and those of a row are summed in segments.
    fn dense(&self, e: &mut Eager, grad: &Tensor) -> Tensor {
        let (n, columns) = (self.lookups.size(0), grad.size(1));
        fill::empty_like(e, &self.lookups);
        fill::empty_like(e, &self.lookups);
        fill::arange(e, n);
        let whole = fill::zeros(e, &[self.rows, columns], grad.dtype);
        let segments = n.min(self.rows) + n / SEGMENT;
        for shape in [&[n][..], &[], &[n], &[n], &[], &[segments]] {
            fill::empty(e, shape, Dtype::I64, Input::None);
        }
        fill::empty(e, &[segments, columns], grad.dtype, Input::None);
        whole
    }
}

/// Rows of a matrix by index.
fn rows_of(e: &mut Eager, x: &Tensor, index: &Tensor) -> Tensor {
    let shape = [index.size(0), x.size(1)];
    e.op("aten::index_select", inputs![x, Input::Int(0), index], |e| {
        let result = fill::empty_then_resized(e, &shape, x.dtype);
        let column = views::view(e, index, &[index.size(0), 1]);
        let wide = reduce::expand(e, &column, &shape);
        e.op("aten::gather.out", inputs![x, Input::Int(0), &wide, false, &result], |e| {
            views::as_strided(e, &result, &shape, &result.strides, None);
            views::as_strided(e, x, &shape, &[0, x.strides[1]], None);
            result.clone()
        })
    })
}
