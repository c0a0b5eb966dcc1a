//! First rung: three loops. Predicted reads: n^3 of A and n^3 of B, two for each multiply-add; C is written n^2 times.
//!
//! It is the specification of the other rungs, so it sums in `f64`.

use super::{Element, GemmError, MatMut, MatRef};

/// Computes `c = alpha * a * b + beta * c`, one element after the other; each sum is rounded to `f32` once, at the end.
///
/// # Errors
///
/// The shapes do not fit.
pub fn gemm_naive<A: Element, B: Element>(
    alpha: f32,
    a: MatRef<'_, A>,
    b: MatRef<'_, B>,
    beta: f32,
    mut c: MatMut<'_>,
) -> Result<(), GemmError> {
    b.expect("B", a.cols(), b.cols())?;
    c.expect("C", a.rows(), b.cols())?;
    for row in 0..a.rows() {
        for col in 0..b.cols() {
            let product = |step| f64::from(a.at(row, step).to_f32()) * f64::from(b.at(step, col).to_f32());
            let sum = f64::from(alpha) * (0..a.cols()).map(product).sum::<f64>();
            let place = c.at(row, col);
            let old = if beta == 0.0 { 0.0 } else { f64::from(beta) * f64::from(*place) };
            *place = (sum + old) as f32;
        }
    }
    Ok(())
}
