//! Elements of a batch of square matrices, selected by two lists of indices: `x[:, rows, columns]`.

use steptime_aten::Dtype;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{arithmetic, copy, fill, reduce, views};
use crate::tensor::Tensor;

/// The elements of each matrix at the given rows and columns.
pub(crate) fn pairs(e: &mut Eager, x: &Tensor, rows: &Tensor, columns: &Tensor) -> Tensor {
    let shape = [x.size(0), rows.size(0)];
    let at = [None, Some(rows.clone()), Some(columns.clone())];
    let result = e.op("aten::index.Tensor", inputs![x, &at[..]], |e| {
        views::as_strided(e, x, &shape, &[x.strides[0], 0], None);
        for index in [rows, columns] {
            views::reshape(e, index, &[1, index.size(0)]);
        }
        e.empty(&shape, x.dtype)
    });
    let before = x.shape.clone();
    e.track(result, "IndexBackward0", &[x], move |e, grad, _| {
        let zeros = fill::new_zeros(e, grad, &before);
        put(e, &zeros, &at, grad);
        vec![Some(zeros)]
    })
}

/// Vectors of each sample in another order: `x[:, order]`.
pub(crate) fn reordered(e: &mut Eager, x: &Tensor, order: &Tensor) -> Tensor {
    let at = [None, Some(order.clone())];
    let shape = x.shape.clone();
    let result = e.op("aten::index.Tensor", inputs![x, &at[..]], |e| {
        views::as_strided(e, x, &shape, &x.strides, None);
        views::reshape(e, order, &[1, order.size(0), 1]);
        e.empty(&shape, x.dtype)
    });
    e.track(result, "IndexBackward0", &[x], move |e, grad, _| {
        let zeros = fill::new_zeros(e, grad, &shape);
        put(e, &zeros, &at, grad);
        vec![Some(zeros)]
    })
}

/// Adds values at positions. Positions are sorted, so that equal ones are adjacent.
fn put(e: &mut Eager, to: &Tensor, at: &[Option<Tensor>], values: &Tensor) {
    let yes = Input::Bool(true);
    e.op("aten::_index_put_impl_", inputs![to, Input::Options(at), values, yes, yes], |e| {
        let mut linear: Option<Tensor> = None;
        for index in at.iter().flatten() {
            let wrapped = with_number(e, "aten::remainder", index);
            let scaled = with_number(e, "aten::mul", &wrapped);
            copy::to_here(e, &scaled);
            linear = Some(match linear {
                None => scaled,
                Some(sum) => arithmetic::add_into(e, &sum, &scaled),
            });
        }
        let Some(linear) = linear else { return to.clone() };
        let wide = reduce::expand(e, values, &values.shape);
        views::contiguous_of(e, &wide);
        let flat = views::reshape(e, &linear, &[-1]);
        fill::empty_like(e, &flat);
        fill::empty_like(e, &flat);
        divide(e, &flat);
        fill::arange(e, flat.size(0));
        to.clone()
    });
}

/// Arithmetic with a number: the scalar overload calls the tensor overload with a host tensor.
fn with_number(e: &mut Eager, op: &str, x: &Tensor) -> Tensor {
    e.op(&format!("{op}.Scalar"), inputs![x, Input::Int(1)], |e| {
        let number = e.host(&[], Dtype::I64);
        e.op(&format!("{op}.Tensor"), inputs![x, &number], |e| e.empty(&x.shape, x.dtype))
    })
}

/// Divides positions in place by the size of one indexed item.
fn divide(e: &mut Eager, x: &Tensor) {
    let (one, rounding) = (Input::Int(1), Input::Text("trunc"));
    e.composite("aten::divide_.Scalar_mode", inputs![x, one, rounding], |e| {
        e.op("aten::div_.Scalar_mode", inputs![x, one, rounding], |e| {
            let number = e.host(&[], Dtype::I64);
            e.op("aten::div_.Tensor_mode", inputs![x, &number, rounding], |_| x.clone())
        })
    });
}
