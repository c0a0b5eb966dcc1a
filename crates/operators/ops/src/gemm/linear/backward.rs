//! The gradients of a linear layer.

use super::super::pack::{Gate, Source};
use super::super::problem::{Product, Right};
use super::super::{Activation, GemmError, MatRef, Plan};
use super::{Gradients, single};
use crate::Cpu;

/// Computes the gradients of `y = activation(x W^T + bias)` from the gradient `dy` of `y`: with `dz = dy * slope(y)`,
/// `dx = dz W`, `dW = dz^T x`, and `dbias` is the sums of the columns of `dz`. The gradients are overwritten.
///
/// `dz` is never stored: each product applies the slope while it packs `dy`.
///
/// # Errors
///
/// The shapes do not fit: `dy` and `y` are `[batch, out]`, `x` is `[batch, in]`, `weight` is `[out, in]`.
pub fn linear_backward(
    cpu: &Cpu,
    dy: MatRef<'_>,
    y: MatRef<'_>,
    x: MatRef<'_>,
    weight: MatRef<'_>,
    activation: Activation,
    gradients: Gradients<'_>,
) -> Result<(), GemmError> {
    let (batch, outputs, inputs) = (dy.rows(), dy.cols(), x.cols());
    y.expect("y", batch, outputs)?;
    x.expect("x", batch, inputs)?;
    weight.expect("the weight", outputs, inputs)?;
    gradients.check(batch, inputs, outputs)?;
    if outputs == 1 && x.col_stride() == 1 && weight.col_stride() == 1 && gradients.have_whole_rows() {
        let dz = single::Slopes { dy, y, activation };
        single::backward(cpu, dz, x, weight.row_part(0, 0, inputs), gradients);
        return Ok(());
    }
    let Gradients { x: dx, weight: dw, bias: db } = gradients;
    let gate = match activation {
        Activation::Identity => None,
        _ => Some(Gate { outputs: y, activation }),
    };
    let dz = Source { view: dy, gate };
    let product = Product {
        a: dz,
        b: Right::Plain(Source::plain(weight)),
        alpha: 1.0,
        beta: 0.0,
        bias: None,
        activation: Activation::Identity,
        row_sums: None,
    };
    match dw {
        Some(dw) if inputs > 0 => {
            let plan = Plan::new(cpu.isa(), outputs, inputs, batch);
            let b = Right::Plain(Source::plain(x));
            Product { a: dz.t(), b, row_sums: db, ..product }.run(cpu, &plan, dw);
        }
        _ => {
            if let Some(db) = db {
                dz.sum_columns(db);
            }
        }
    }
    if let Some(dx) = dx {
        let plan = Plan::new(cpu.isa(), batch, inputs, outputs);
        Product { a: dz, ..product }.run(cpu, &plan, dx);
    }
    Ok(())
}
