//! Backward passes of embedding tables, fused with the optimizer.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Lookups, Pooling, Table, Tables};

use crate::error::{code, free, handle, slice};

/// f32 tables with sum pooling, their optimizer and its state.
pub struct Backward {
    tables: Tables<'static>,
    optimizer: RowOptimizer,
    grouping: Grouping,
}

/// An optimizer of `count` tables, `[rows[t], dims[t]]` floats at `weights[t]`. `rule` is 0 for SGD, 1 for Adagrad, 2
/// for row-wise Adagrad, 3 for Adam, 4 for partial row-wise Adam, with their usual settings. Null on failure. To be
/// freed with [`steptime_backward_free`].
///
/// # Safety
///
/// Each pointer goes to as many elements; the weights live, and nobody else changes them during a step, until the
/// handle is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_backward_new(
    count: usize,
    weights: *const *mut f32,
    rows: *const usize,
    dims: *const usize,
    rule: c_int,
    learning_rate: f32,
) -> *mut Backward {
    handle(|| {
        // SAFETY: as many elements, by the caller's promise.
        let (weights, rows, dims) =
            unsafe { (slice(weights, count), slice(rows, count), slice(dims, count)) };
        let rule = match rule {
            0 => RowRule::SGD,
            1 => RowRule::Adagrad { eps: 1e-8 },
            2 => RowRule::ROW_WISE_ADAGRAD,
            3 => RowRule::ADAM,
            4 => RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 },
            other => return Err(format!("there is no optimizer {other}: choose 0 to 4").into()),
        };
        let mut tables = Vec::with_capacity(count);
        for (at, ((&start, &rows), &dim)) in weights.iter().zip(rows).zip(dims).enumerate() {
            let len = rows.checked_mul(dim).filter(|_| !start.is_null());
            let len = len.ok_or_else(|| format!("table {at}: no weights, or too many"))?;
            // SAFETY: as many floats, which live long enough, by the caller's promise.
            let values = unsafe { std::slice::from_raw_parts_mut(start, len) };
            tables.push(Table::borrow_mut(&format!("table {at}"), values, dim)?);
        }
        let tables = Tables::new(tables, Pooling::Sum);
        let optimizer = RowOptimizer::new(rule, learning_rate, &tables)?;
        Ok(Backward { tables, optimizer, grouping: Grouping::new() })
    })
}

/// One backward pass: groups `lookups` indices in `bags` bags a table, with T x `bags` + 1 offsets, and steps every row
/// that is looked up. `weights` holds a factor for each lookup, or is null; `gradient` has a row for each bag, `stride`
/// floats apart. 0 for success.
///
/// # Safety
///
/// The handles are alive and used by no other thread; each pointer goes to as many elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_backward_step(
    backward: *mut Backward,
    cpu: *const Cpu,
    bags: usize,
    lookups: usize,
    indices: *const i64,
    offsets: *const i64,
    weights: *const f32,
    gradient: *const f32,
    stride: usize,
) -> c_int {
    code(|| {
        // SAFETY: alive and used here only, by the caller's promise.
        let (backward, cpu) = unsafe { (backward.as_mut(), cpu.as_ref()) };
        let (backward, cpu) =
            backward.zip(cpu).ok_or("a handle is null: see the error of the call that made it")?;
        let (count, columns) = (backward.tables.len() * bags + 1, backward.tables.columns());
        let gradients = if bags == 0 { 0 } else { (bags - 1).saturating_mul(stride).saturating_add(columns) };
        // SAFETY: as many elements, by the caller's promise.
        let (indices, offsets, gradient) =
            unsafe { (slice(indices, lookups), slice(offsets, count), slice(gradient, gradients)) };
        let mut batch = Lookups::new(bags, indices, offsets)?;
        if !weights.is_null() {
            // SAFETY: as above.
            batch = batch.with_weights(unsafe { slice(weights, lookups) })?;
        }
        let Backward { tables, optimizer, grouping } = backward;
        grouping.group(cpu, tables, &batch, Bounds::Error)?;
        optimizer.step(cpu, tables, &batch, grouping, Bounds::Error, &Gradient::new(gradient, stride))?;
        Ok(())
    })
}

/// Frees an optimizer and its state.
///
/// # Safety
///
/// `backward` is null, or came from [`steptime_backward_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_backward_free(backward: *mut Backward) {
    // SAFETY: as the caller promises.
    unsafe { free(backward) }
}
