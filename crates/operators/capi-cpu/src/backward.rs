//! Backward passes of embedding tables, fused with the optimizer.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Lookups, Pooling, Table, Tables};

use crate::apart::{self, Span, slice_mut};
use crate::bag::floats;
use crate::error::{code, free, handle};
use crate::pointers::{alive, alive_mut, slice};

/// f32 tables with sum pooling, their optimizer and its state.
pub struct Backward {
    tables: Tables<'static>,
    weights: Vec<Span>,
    optimizer: RowOptimizer,
    grouping: Grouping,
}

/// An optimizer of `count` tables, `[rows[t], dims[t]]` floats at `weights[t]`. `rule` is 0 for SGD, 1 for Adagrad, 2
/// for row-wise Adagrad, 3 for Adam, 4 for partial row-wise Adam, with their usual settings. Null on failure. To be
/// freed with [`steptime_backward_free`].
///
/// # Safety
///
/// Each pointer points to as many elements as stated. The weights live until the handle is freed, and no other code
/// uses them during a step.
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
        let (weights, rows) = unsafe { (slice("weights", weights, count)?, slice("rows", rows, count)?) };
        // SAFETY: as above.
        let dims = unsafe { slice("dims", dims, count)? };
        let rule = match rule {
            0 => RowRule::SGD,
            1 => RowRule::Adagrad { eps: 1e-8 },
            2 => RowRule::ROW_WISE_ADAGRAD,
            3 => RowRule::ADAM,
            4 => RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 },
            other => return Err(format!("there is no optimizer {other}: choose 0 to 4").into()),
        };
        let given = || {
            let all = weights.iter().zip(rows).zip(dims).enumerate();
            all.map(|(at, ((&start, &rows), &dim))| {
                (format!("table {at}"), start, rows.saturating_mul(dim), dim)
            })
        };
        let spans: Vec<Span> =
            given().map(|(name, start, len, _)| Span::written(&name, start, len)).collect();
        apart::check_with(&[], &spans)?;
        let mut tables = Vec::with_capacity(count);
        for (name, start, len, dim) in given() {
            // SAFETY: as many floats, which live long enough and which no other code uses, by the caller's promise; no
            // two tables overlap, as was checked.
            let values = unsafe { slice_mut(&name, start, len)? };
            tables.push(Table::borrow_mut(&name, values, dim)?);
        }
        let tables = Tables::new(tables, Pooling::Sum);
        let optimizer = RowOptimizer::new(rule, learning_rate, &tables)?;
        Ok(Backward { tables, weights: spans, optimizer, grouping: Grouping::new() })
    })
}

/// One backward pass: groups `lookups` indices in `bags` bags a table, with T x `bags` + 1 offsets, and steps every row
/// that is looked up. `weights` holds a factor for each lookup, or is null; `gradient` has a row for each bag, `stride`
/// floats apart. 0 for success.
///
/// # Safety
///
/// The handles are alive and used by no other thread; each pointer points to as many elements as stated.
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
        let (backward, cpu) = unsafe { (alive_mut(backward)?, alive(cpu)?) };
        let count = Lookups::offset_count(backward.tables.len(), bags)?;
        let gradients = floats(bags, stride, backward.tables.columns());
        let given = [
            Span::read("indices", indices, lookups),
            Span::read("offsets", offsets, count),
            Span::read("weights", weights, lookups),
            Span::read("gradient", gradient, gradients),
        ];
        apart::check_with(&given, &backward.weights)?;
        // SAFETY: as many elements, by the caller's promise.
        let (indices, offsets, gradient) = unsafe {
            (
                slice("indices", indices, lookups)?,
                slice("offsets", offsets, count)?,
                slice("gradient", gradient, gradients)?,
            )
        };
        let mut batch = Lookups::new(bags, indices, offsets)?;
        if !weights.is_null() {
            // SAFETY: as above.
            batch = batch.with_weights(unsafe { slice("weights", weights, lookups)? })?;
        }
        let Backward { tables, optimizer, grouping, .. } = backward;
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
