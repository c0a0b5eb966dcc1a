//! Products of matrices, and linear layers.

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::ops::{reduce, views};
use crate::tensor::Tensor;

/// Rows times a weight `[out, in]`, plus a bias where there is one.
pub(crate) fn linear(e: &mut Eager, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    e.composite("aten::linear", inputs![x, weight, bias], |e| {
        let turned = views::t(e, weight);
        match bias {
            Some(bias) => addmm(e, bias, x, &turned),
            None => matmul(e, x, &turned),
        }
    })
}

/// The product of two matrices, by the op for any rank.
pub(crate) fn matmul(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    e.composite("aten::matmul", inputs![a, b], |e| {
        let result = mm(e, a, b);
        let (left, right) = (a.clone(), b.clone());
        e.track(result, "MmBackward0", &[a, b], move |e, grad, needed| {
            // The gradient of the second factor comes first.
            let second = needed[1].then(|| second_gradient(e, grad, &left, &right));
            vec![needed[0].then(|| first_gradient(e, grad, &right)), second]
        })
    })
}

fn addmm(e: &mut Eager, bias: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
    let shape = [a.size(0), b.size(1)];
    let list = inputs![bias, a, b, Input::Int(1), Input::Int(1)];
    let result = e.op("aten::addmm", list, |e| {
        // cuBLASLt adds the bias, except for products with a vector.
        if b.shape.contains(&1) {
            reduce::expand(e, bias, &shape);
        }
        e.empty(&shape, a.dtype)
    });
    let (left, right) = (a.clone(), b.clone());
    e.track(result, "AddmmBackward0", &[bias, a, b], move |e, grad, needed| {
        let first = needed[1].then(|| first_gradient(e, grad, &right));
        let second = needed[2].then(|| second_gradient(e, grad, &left, &right));
        vec![Some(grad.clone()), first, second]
    })
}

fn first_gradient(e: &mut Eager, grad: &Tensor, right: &Tensor) -> Tensor {
    let turned = views::t(e, right);
    mm(e, grad, &turned)
}

/// The gradient in the memory order of the second factor: for a transposed weight it is a transpose.
fn second_gradient(e: &mut Eager, grad: &Tensor, left: &Tensor, right: &Tensor) -> Tensor {
    if right.strides[0] == 1 && right.strides[1] == right.size(0) {
        let turned = views::t(e, grad);
        let product = mm(e, &turned, left);
        return views::t(e, &product);
    }
    let turned = views::t(e, left);
    mm(e, &turned, grad)
}

fn mm(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    e.op("aten::mm", inputs![a, b], |e| e.empty(&[a.size(0), b.size(1)], a.dtype))
}

/// A batch of products of matrices.
pub(crate) fn bmm(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    let result = product_of_each(e, a, b);
    let (left, right) = (a.clone(), b.clone());
    e.track(result, "BmmBackward0", &[a, b], move |e, grad, needed| {
        let second = needed[1].then(|| {
            let turned = views::transpose(e, &left, 1, 2);
            product_of_each(e, &turned, grad)
        });
        let first = needed[0].then(|| {
            let turned = views::transpose(e, &right, 1, 2);
            product_of_each(e, grad, &turned)
        });
        vec![first, second]
    })
}

fn product_of_each(e: &mut Eager, a: &Tensor, b: &Tensor) -> Tensor {
    e.op("aten::bmm", inputs![a, b], |e| e.empty(&[a.size(0), a.size(1), b.size(2)], a.dtype))
}
