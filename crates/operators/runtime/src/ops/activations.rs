//! Activations and their gradients.

use steptime_ops::elementwise::{Expr, Unary};

use super::elementwise::{of_one, of_two};
use super::slope;
use crate::binder::{Binder, Built, Refusal};
use crate::gpu::GpuSlope;
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] = &[
    runs("aten::relu", relu),
    runs("aten::relu_", relu),
    runs("aten::threshold_backward", threshold_backward),
    runs("aten::sigmoid", sigmoid),
    runs("aten::sigmoid_backward", sigmoid_backward),
];

fn relu(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    of_one(b, Expr::relu)
}

/// `threshold_backward(grad, result, threshold)`: the gradient where the result exceeds 0.
fn threshold_backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.number(2)? != 0.0 {
        return Err("its threshold is not 0".to_owned());
    }
    if b.is_half_rows(b.id(0)?) && b.is_half_rows(b.id(1)?) && b.is_half_rows(b.result(0)?) {
        b.takes_halves = true;
        let (grad, output) = (b.floats(0)?, b.floats(1)?);
        let to = b.writes(0)?;
        return slope::on_gpu(GpuSlope::new(&grad, Some([output, to]), None));
    }
    of_two(b, |grad, result| grad * result.unary(Unary::Step))
}

fn sigmoid(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    of_one(b, Expr::sigmoid)
}

/// `sigmoid_backward(grad, result)`: `grad (1 - result) result`.
fn sigmoid_backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    of_two(b, |grad, result| grad * ((Expr::constant(1.0) - result.clone()) * result))
}
