//! The same layers in plain loops, with sums in `f64`.

use super::super::{Activation, MatRef};

/// Computes `activation(x W^T + bias)`, row by row.
///
/// # Panics
///
/// The shapes do not fit.
#[must_use]
pub fn linear_reference(
    x: MatRef<'_>,
    weight: MatRef<'_>,
    bias: Option<&[f32]>,
    activation: Activation,
) -> Vec<f32> {
    let mut y = Vec::with_capacity(x.rows() * weight.rows());
    for row in 0..x.rows() {
        for out in 0..weight.rows() {
            let products = (0..x.cols()).map(|at| f64::from(x.at(row, at)) * f64::from(weight.at(out, at)));
            let sum = products.sum::<f64>() + bias.map_or(0.0, |bias| f64::from(bias[out]));
            y.push(activation.value(sum as f32));
        }
    }
    y
}

/// Computes the gradients `(dx, dW, dbias)`, each row by row.
///
/// # Panics
///
/// The shapes do not fit.
#[must_use]
pub fn linear_backward_reference(
    dy: MatRef<'_>,
    y: MatRef<'_>,
    x: MatRef<'_>,
    weight: MatRef<'_>,
    activation: Activation,
) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (batch, outputs, inputs) = (dy.rows(), dy.cols(), x.cols());
    let mut dx = vec![0.0_f64; batch * inputs];
    let mut dw = vec![0.0_f64; outputs * inputs];
    let mut db = vec![0.0_f64; outputs];
    for row in 0..batch {
        for out in 0..outputs {
            let dz = f64::from(dy.at(row, out)) * f64::from(activation.slope(y.at(row, out)));
            db[out] += dz;
            for at in 0..inputs {
                dx[row * inputs + at] += dz * f64::from(weight.at(out, at));
                dw[out * inputs + at] += dz * f64::from(x.at(row, at));
            }
        }
    }
    let round = |wide: Vec<f64>| wide.into_iter().map(|value| value as f32).collect();
    (round(dx), round(dw), round(db))
}
