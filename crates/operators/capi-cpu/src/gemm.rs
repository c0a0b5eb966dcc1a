//! Matrix products and linear layers.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::gemm::{Activation, Gradients, MatMut, MatRef, gemm, linear, linear_backward};

use crate::apart::{self, Span, slice_mut};
use crate::error::{Failure, code};
use crate::pointers::{alive, slice};

/// `c = alpha * a b + beta * c`: `a` is `[m, k]` and `b` is `[k, n]` with any strides, given as floats from row to row
/// and from column to column; `c` is `[m, n]`, row by row. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer points to as many floats as its shape and strides span; no other code uses `c`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_gemm(
    cpu: *const Cpu,
    m: usize,
    n: usize,
    k: usize,
    alpha: f32,
    a: *const f32,
    a_row: usize,
    a_col: usize,
    b: *const f32,
    b_row: usize,
    b_col: usize,
    beta: f32,
    c: *mut f32,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let cpu = unsafe { alive(cpu) }?;
        apart::check(vec![
            Span::read("a", a, span(m, k, a_row, a_col)),
            Span::read("b", b, span(k, n, b_row, b_col)),
            Span::written("c", c, m.saturating_mul(n)),
        ])?;
        // SAFETY: each pointer points to as many floats, by the caller's promise.
        let (a, b) = unsafe { (read("a", a, m, k, a_row, a_col)?, read("b", b, k, n, b_row, b_col)?) };
        // SAFETY: as above; no other code uses `c`, and it overlaps neither operand, as was checked.
        let c = unsafe { write("c", c, m, n) }?.ok_or("there is no c: its pointer is null")?;
        Ok(gemm(cpu, alpha, a, b, beta, c)?)
    })
}

/// `y = activation(x W^T + bias)`: `x` is `[batch, inputs]`, `weight` is `[outputs, inputs]`, `y` is `[batch, outputs]`,
/// each row by row; `bias` has `outputs` elements or is null. `activation` is 0 for none, 1 for a rectifier, 2 for a
/// sigmoid. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer points to as many floats as its shape spans; no other code uses `y`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_linear(
    cpu: *const Cpu,
    batch: usize,
    inputs: usize,
    outputs: usize,
    x: *const f32,
    weight: *const f32,
    bias: *const f32,
    activation: c_int,
    y: *mut f32,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let cpu = unsafe { alive(cpu) }?;
        apart::check(vec![
            Span::read("x", x, batch.saturating_mul(inputs)),
            Span::read("weight", weight, outputs.saturating_mul(inputs)),
            Span::read("bias", bias, outputs),
            Span::written("y", y, batch.saturating_mul(outputs)),
        ])?;
        let biased = !bias.is_null();
        // SAFETY: each pointer points to as many floats, by the caller's promise.
        let (x, weight, bias) = unsafe {
            (
                read("x", x, batch, inputs, inputs, 1)?,
                read("weight", weight, outputs, inputs, inputs, 1)?,
                slice("bias", bias, if biased { outputs } else { 0 })?,
            )
        };
        // SAFETY: as above; no other code uses `y`, and it overlaps no operand, as was checked.
        let y = unsafe { write("y", y, batch, outputs) }?.ok_or("there is no y: its pointer is null")?;
        Ok(linear(cpu, x, weight, biased.then_some(bias), named(activation)?, y)?)
    })
}

/// The gradients of [`steptime_linear`], from the gradient `dy` of its output `y`: `dx`, `dweight` and `dbias` have the
/// shapes of `x`, `weight` and the bias; those that are null are not computed. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer points to as many floats as its shape spans; no other code uses the gradients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_linear_backward(
    cpu: *const Cpu,
    batch: usize,
    inputs: usize,
    outputs: usize,
    dy: *const f32,
    y: *const f32,
    x: *const f32,
    weight: *const f32,
    activation: c_int,
    dx: *mut f32,
    dweight: *mut f32,
    dbias: *mut f32,
) -> c_int {
    code(|| {
        // SAFETY: as the caller promises.
        let cpu = unsafe { alive(cpu) }?;
        apart::check(vec![
            Span::read("dy", dy, batch.saturating_mul(outputs)),
            Span::read("y", y, batch.saturating_mul(outputs)),
            Span::read("x", x, batch.saturating_mul(inputs)),
            Span::read("weight", weight, outputs.saturating_mul(inputs)),
            Span::written("dx", dx, batch.saturating_mul(inputs)),
            Span::written("dweight", dweight, outputs.saturating_mul(inputs)),
            Span::written("dbias", dbias, outputs),
        ])?;
        // SAFETY: each pointer points to as many floats, by the caller's promise.
        let (dy, y) = unsafe {
            (read("dy", dy, batch, outputs, outputs, 1)?, read("y", y, batch, outputs, outputs, 1)?)
        };
        // SAFETY: as above.
        let (x, weight) = unsafe {
            (read("x", x, batch, inputs, inputs, 1)?, read("weight", weight, outputs, inputs, inputs, 1)?)
        };
        let biased = !dbias.is_null();
        // SAFETY: as above; no other code uses the gradients, and they overlap no operand nor each other, as was
        // checked.
        let (dx, dweight, dbias) = unsafe {
            (
                write("dx", dx, batch, inputs)?,
                write("dweight", dweight, outputs, inputs)?,
                slice_mut("dbias", dbias, if biased { outputs } else { 0 })?,
            )
        };
        let gradients = Gradients { x: dx, weight: dweight, bias: biased.then_some(dbias) };
        Ok(linear_backward(cpu, dy, y, x, weight, named(activation)?, gradients)?)
    })
}

fn named(activation: c_int) -> Result<Activation, Failure> {
    match activation {
        0 => Ok(Activation::Identity),
        1 => Ok(Activation::Relu),
        2 => Ok(Activation::Sigmoid),
        other => Err(format!("there is no activation {other}: choose 0 to 2").into()),
    }
}

/// Number of floats that a matrix spans; `usize::MAX` where the number overflows.
fn span(rows: usize, cols: usize, row: usize, col: usize) -> usize {
    if rows == 0 || cols == 0 {
        return 0;
    }
    let (down, across) = ((rows - 1).saturating_mul(row), (cols - 1).saturating_mul(col));
    down.saturating_add(across).saturating_add(1)
}

/// # Safety
///
/// `start` points to as many floats as shape and strides span.
unsafe fn read<'a>(
    what: &str,
    start: *const f32,
    rows: usize,
    cols: usize,
    row: usize,
    col: usize,
) -> Result<MatRef<'a>, Failure> {
    // SAFETY: as the caller promises.
    let data = unsafe { slice(what, start, span(rows, cols, row, col))? };
    Ok(MatRef::with_strides(data, rows, cols, row, col)?)
}

/// An output, row by row; `None` where the pointer is null although the output has elements.
///
/// # Safety
///
/// `start` is null, or points to `rows * cols` floats that no other code uses.
unsafe fn write<'a>(
    what: &str,
    start: *mut f32,
    rows: usize,
    cols: usize,
) -> Result<Option<MatMut<'a>>, Failure> {
    let len = rows.saturating_mul(cols);
    if start.is_null() && len > 0 {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let data = unsafe { slice_mut(what, start, len)? };
    Ok(Some(MatMut::new(data, rows, cols)?))
}
