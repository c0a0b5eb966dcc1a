//! `C = alpha A B + beta C`, the public interface.

use super::linear::single;
use super::pack::Source;
use super::problem::{Product, Right};
use super::{Activation, Element, GemmError, MatMut, MatRef, Plan};
use crate::Cpu;

/// Computes `c = alpha * a * b + beta * c`, for any strides, so that transposes cost nothing but their memory order.
/// Products are summed in `f32`, each sum in the order of k; with few rows, as several chains of terms one after the
/// other. The boundaries of chains depend on the shape and not on the number of threads.
///
/// Where `beta` is 0, the previous `c` is not read.
///
/// # Errors
///
/// The shapes do not fit: `a` is `[m, k]`, `b` is `[k, n]`, `c` is `[m, n]`.
pub fn gemm<A: Element, B: Element>(
    cpu: &Cpu,
    alpha: f32,
    a: MatRef<'_, A>,
    b: MatRef<'_, B>,
    beta: f32,
    c: MatMut<'_>,
) -> Result<(), GemmError> {
    b.expect("B", a.cols(), b.cols())?;
    c.expect("C", a.rows(), b.cols())?;
    if c.col_stride != 1 && c.row_stride == 1 {
        // Tiles store rows: compute the transpose of everything.
        return gemm(cpu, alpha, b.t(), a.t(), beta, c.t());
    }
    if let (Some((a, vector)), true) = (dots(&a, &b), alpha == 1.0 && beta == 0.0) {
        single::forward(cpu, a, vector, 0.0, Activation::Identity, c);
        return Ok(());
    }
    let plan = Plan::new(cpu.isa(), a.rows(), b.cols(), a.cols());
    gemm_planned(cpu, &plan, alpha, a, b, beta, c)
}

/// Returns both operands, if C is the dot products of contiguous rows of A with one contiguous column.
fn dots<'a, A: Element, B: Element>(a: &MatRef<'a, A>, b: &MatRef<'a, B>) -> Option<(MatRef<'a>, &'a [f32])> {
    let (m, k) = (a.rows(), a.cols());
    if b.cols() != 1 || a.col_stride() != 1 || b.row_stride() != 1 {
        return None;
    }
    let (data, vector) = (A::as_f32(a.tail(0, 0))?, B::as_f32(b.tail(0, 0))?.get(..k)?);
    Some((MatRef::with_strides(data, m, k, a.row_stride(), 1).ok()?, vector))
}

/// Computes [`gemm`] by a given plan, to measure the plan. Another k_c changes the last bits of the sums.
///
/// # Errors
///
/// The shapes do not fit, or the plan is for other shapes or instructions.
pub fn gemm_planned<A: Element, B: Element>(
    cpu: &Cpu,
    plan: &Plan,
    alpha: f32,
    a: MatRef<'_, A>,
    b: MatRef<'_, B>,
    beta: f32,
    c: MatMut<'_>,
) -> Result<(), GemmError> {
    plan.check(cpu.isa())?;
    a.expect("A", plan.m, plan.k)?;
    b.expect("B", plan.k, plan.n)?;
    c.expect("C", plan.m, plan.n)?;
    let (a, b) = (Source::plain(a), Right::Plain(Source::plain(b)));
    let activation = Activation::Identity;
    Product { a, b, alpha, beta, bias: None, activation, row_sums: None }.run(cpu, plan, c);
    Ok(())
}
