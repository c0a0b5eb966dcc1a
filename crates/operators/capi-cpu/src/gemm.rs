//! Matrix products and linear layers.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::gemm::{Activation, Gradients, MatMut, MatRef, gemm, linear, linear_backward};

use crate::error::{Failure, code, slice};

/// `c = alpha * a b + beta * c`: `a` is `[m, k]` and `b` is `[k, n]` with any strides, in floats from a row to the next
/// and from a column to the next; `c` is `[m, n]`, row by row. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer goes to as many floats as its shape and strides span; nobody else uses `c`.
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
        let cpu = unsafe { borrow(cpu) }?;
        // SAFETY: as above.
        let (a, b) = unsafe { (read(a, m, k, a_row, a_col)?, read(b, k, n, b_row, b_col)?) };
        // SAFETY: as above.
        let c = unsafe { write(c, m, n) }?.ok_or("there is no c")?;
        Ok(gemm(cpu, alpha, a, b, beta, c)?)
    })
}

/// `y = activation(x W^T + bias)`: `x` is `[batch, inputs]`, `weight` is `[outputs, inputs]`, `y` is `[batch, outputs]`,
/// each row by row; `bias` has `outputs` elements or is null. `activation` is 0 for none, 1 for a rectifier, 2 for a
/// sigmoid. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer goes to as many floats; nobody else uses `y`.
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
        let cpu = unsafe { borrow(cpu) }?;
        // SAFETY: as above.
        let (x, weight) =
            unsafe { (read(x, batch, inputs, inputs, 1)?, read(weight, outputs, inputs, inputs, 1)?) };
        // SAFETY: as above.
        let bias = (!bias.is_null()).then(|| unsafe { slice(bias, outputs) });
        // SAFETY: as above.
        let y = unsafe { write(y, batch, outputs) }?.ok_or("there is no y")?;
        Ok(linear(cpu, x, weight, bias, named(activation)?, y)?)
    })
}

/// The gradients of [`steptime_linear`], of whose output `y` the gradient is `dy`: `dx`, `dweight` and `dbias` have the
/// shapes of `x`, `weight` and the bias; those that are null are not computed. 0 for success.
///
/// # Safety
///
/// `cpu` is alive; each pointer goes to as many floats; nobody else uses the gradients.
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
        let cpu = unsafe { borrow(cpu) }?;
        // SAFETY: as above.
        let (dy, y) =
            unsafe { (read(dy, batch, outputs, outputs, 1)?, read(y, batch, outputs, outputs, 1)?) };
        // SAFETY: as above.
        let (x, weight) =
            unsafe { (read(x, batch, inputs, inputs, 1)?, read(weight, outputs, inputs, inputs, 1)?) };
        // SAFETY: as above.
        let (dx, dweight) = unsafe { (write(dx, batch, inputs)?, write(dweight, outputs, inputs)?) };
        // SAFETY: as above.
        let dbias = (!dbias.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(dbias, outputs) });
        let gradients = Gradients { x: dx, weight: dweight, bias: dbias };
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

/// # Safety
///
/// The handle is null or alive.
unsafe fn borrow<'a>(cpu: *const Cpu) -> Result<&'a Cpu, Failure> {
    // SAFETY: as the caller promises.
    let cpu = unsafe { cpu.as_ref() };
    Ok(cpu.ok_or("a handle is null: see the error of the call that made it")?)
}

/// # Safety
///
/// `start` goes to as many floats as shape and strides span.
unsafe fn read<'a>(
    start: *const f32,
    rows: usize,
    cols: usize,
    row: usize,
    col: usize,
) -> Result<MatRef<'a>, Failure> {
    let span =
        || (rows.checked_sub(1)?.checked_mul(row)?).checked_add(cols.checked_sub(1)?.checked_mul(col)?);
    let len = span().and_then(|last| last.checked_add(1)).unwrap_or(0);
    // SAFETY: as the caller promises.
    Ok(MatRef::with_strides(unsafe { slice(start, len) }, rows, cols, row, col)?)
}

/// An output, row by row; none where the pointer is null.
///
/// # Safety
///
/// `start` is null, or goes to `rows * cols` floats that nobody else uses.
unsafe fn write<'a>(start: *mut f32, rows: usize, cols: usize) -> Result<Option<MatMut<'a>>, Failure> {
    if start.is_null() {
        return Ok(None);
    }
    let len = rows.checked_mul(cols).ok_or("a shape with too many elements")?;
    // SAFETY: as the caller promises.
    let data = unsafe { std::slice::from_raw_parts_mut(start, len) };
    Ok(Some(MatMut::new(data, rows, cols)?))
}
