//! `y = activation(x W^T + bias)`.

use super::super::pack::Source;
use super::super::problem::{Product, Right};
use super::super::{Activation, GemmError, MatMut, MatRef, PackedMatrix, Plan};
use super::single;
use crate::Cpu;

/// Computes `y = activation(x W^T + bias)`: `x` is `[batch, in]`, `weight` is `[out, in]`, `bias` has `out` elements,
/// `y` is
/// `[batch, out]`.
///
/// # Errors
///
/// The shapes do not fit.
pub fn linear(
    cpu: &Cpu,
    x: MatRef<'_>,
    weight: MatRef<'_>,
    bias: Option<&[f32]>,
    activation: Activation,
    y: MatMut<'_>,
) -> Result<(), GemmError> {
    let (batch, inputs, outputs) = (x.rows(), x.cols(), weight.rows());
    weight.expect("the weight", outputs, inputs)?;
    check_output(&y, batch, outputs, bias)?;
    if outputs == 1 && x.col_stride() == 1 && weight.col_stride() == 1 {
        single::forward(
            cpu,
            x,
            weight.row_part(0, 0, inputs),
            bias.map_or(0.0, |bias| bias[0]),
            activation,
            y,
        );
        return Ok(());
    }
    let plan = Plan::new(cpu.isa(), batch, outputs, inputs);
    let (a, b) = (Source::plain(x), Right::Plain(Source::plain(weight.t())));
    Product { a, b, alpha: 1.0, beta: 0.0, bias, activation, row_sums: None }.run(cpu, &plan, y);
    Ok(())
}

/// Computes [`linear`] with a packed weight: `PackedMatrix::new(cpu, weight.t())`.
///
/// # Errors
///
/// The shapes do not fit, or the weight was packed for other instructions.
pub fn linear_packed(
    cpu: &Cpu,
    x: MatRef<'_>,
    weight: &PackedMatrix,
    bias: Option<&[f32]>,
    activation: Activation,
    y: MatMut<'_>,
) -> Result<(), GemmError> {
    let (batch, outputs) = (x.rows(), weight.cols());
    x.expect("x", batch, weight.rows())?;
    check_output(&y, batch, outputs, bias)?;
    weight.check(cpu)?;
    let plan = Plan::prepacked(cpu.isa(), batch, outputs, weight.rows());
    let (a, b) = (Source::plain(x), Right::<f32>::Packed(weight.panels()));
    Product { a, b, alpha: 1.0, beta: 0.0, bias, activation, row_sums: None }.run(cpu, &plan, y);
    Ok(())
}

fn check_output(y: &MatMut, batch: usize, outputs: usize, bias: Option<&[f32]>) -> Result<(), GemmError> {
    y.expect("y", batch, outputs)?;
    match bias {
        Some(bias) if bias.len() != outputs => {
            Err(GemmError::Length { what: "the bias", found: bias.len(), expected: outputs })
        }
        _ => Ok(()),
    }
}
