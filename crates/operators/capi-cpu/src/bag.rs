//! Forward passes of embedding bags over many tables.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::embedding::{Bounds, Element, Ints, Lookups, Pooling, Scale, Table, Tables, forward};

use crate::apart::{self, Span, slice_mut};
use crate::error::{Failure, code, free, handle};
use crate::pointers::{alive, slice};

/// Tables for reading.
pub struct Bag {
    tables: Tables<'static>,
    rows: Vec<Span>,
}

/// Tables of one element type and sum pooling, `rows[t]` rows of `dims[t]` columns at `data[t]`, `pitches[t]` bytes
/// from row to row, the last row's padding included. `element` is 0 for f32, 1 for f16, 2 for bf16, 3 for int8 and 4
/// for int4 behind an f16 scale and bias. Null on failure. To be freed with [`steptime_bag_free`].
///
/// # Safety
///
/// Each pointer points to as many elements as stated. The rows live and do not change until the handle is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_bag_new(
    count: usize,
    data: *const *const u8,
    rows: *const usize,
    dims: *const usize,
    pitches: *const usize,
    element: c_int,
) -> *mut Bag {
    handle(|| {
        // SAFETY: as many elements, by the caller's promise.
        let (data, rows) = unsafe { (slice("data", data, count)?, slice("rows", rows, count)?) };
        // SAFETY: as above.
        let (dims, pitches) = unsafe { (slice("dims", dims, count)?, slice("pitches", pitches, count)?) };
        let element = element_type(element)
            .ok_or_else(|| format!("there is no element type {element}: choose 0 to 4"))?;
        let (mut tables, mut spans) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (at, (((&start, &rows), &dim), &pitch)) in
            data.iter().zip(rows).zip(dims).zip(pitches).enumerate()
        {
            let name = format!("table {at}");
            // SAFETY: as many bytes, which live long enough, by the caller's promise.
            let bytes = unsafe { slice(&name, start, rows.saturating_mul(pitch))? };
            spans.push(Span::read(&name, start, bytes.len()));
            tables.push(Table::borrow_bytes(&name, bytes, [rows, dim], element, pitch)?);
        }
        Ok(Bag { tables: Tables::new(tables, Pooling::Sum), rows: spans })
    })
}

/// Bytes from row to row that suit a table of `element`, as in [`steptime_bag_new`], and `dim` columns; 0 for an
/// unknown element type.
#[unsafe(no_mangle)]
pub extern "C" fn steptime_bag_pitch(element: c_int, dim: usize) -> usize {
    element_type(element).map_or(0, |element| element.pitch(dim))
}

/// Pools `lookups` indices in `bags` bags a table, with T x `bags` + 1 offsets, into `out`, which has a row for each bag,
/// `stride` floats apart. Indices and offsets have `bits` bits, 32 or 64. `weights` holds a factor for each lookup, or is
/// null. 0 for success.
///
/// # Safety
///
/// The handles are alive; each pointer points to as many elements as stated, and no other code uses those of `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_bag_forward(
    bag: *const Bag,
    cpu: *const Cpu,
    bags: usize,
    lookups: usize,
    indices: *const u8,
    offsets: *const u8,
    bits: c_int,
    weights: *const f32,
    out: *mut f32,
    stride: usize,
) -> c_int {
    code(|| {
        // SAFETY: alive, by the caller's promise.
        let (bag, cpu) = unsafe { (alive(bag)?, alive(cpu)?) };
        let offset_count = Lookups::offset_count(bag.tables.len(), bags)?;
        let floats = floats(bags, stride, bag.tables.columns());
        let width = bits.unsigned_abs() as usize / 8;
        let given = [
            Span::read("indices", indices, lookups.saturating_mul(width)),
            Span::read("offsets", offsets, offset_count.saturating_mul(width)),
            Span::read("weights", weights, lookups),
            Span::written("out", out, floats),
        ];
        apart::check_with(&given, &bag.rows)?;
        // SAFETY: as many elements, by the caller's promise.
        let (indices, offsets) = unsafe {
            (ints("indices", indices, lookups, bits)?, ints("offsets", offsets, offset_count, bits)?)
        };
        let mut batch = Lookups::new(bags, indices, offsets)?;
        if !weights.is_null() {
            // SAFETY: as above.
            batch = batch.with_weights(unsafe { slice("weights", weights, lookups)? })?;
        }
        // SAFETY: as many floats, used here only, by the caller's promise.
        let out = unsafe { slice_mut("out", out, floats)? };
        forward(cpu, &bag.tables, &batch, Bounds::Error, out, stride)?;
        Ok(())
    })
}

/// Number of floats that `bags` rows span, with `columns` floats a row and `stride` floats from row to row; 0 without
/// bags.
pub(crate) fn floats(bags: usize, stride: usize, columns: usize) -> usize {
    bags.checked_sub(1).map_or(0, |rows| rows.saturating_mul(stride).saturating_add(columns))
}

/// Returns the element type of a number of the C interface.
fn element_type(number: c_int) -> Option<Element> {
    let all =
        [Element::F32, Element::F16, Element::Bf16, Element::Int8(Scale::F16), Element::Int4(Scale::F16)];
    usize::try_from(number).ok().and_then(|number| all.get(number).copied())
}

/// Integers of 32 or 64 bits.
///
/// # Safety
///
/// As that of [`slice`].
unsafe fn ints<'a>(what: &str, start: *const u8, count: usize, bits: c_int) -> Result<Ints<'a>, Failure> {
    // SAFETY: as many numbers of that width, by the caller's promise.
    unsafe {
        match bits {
            32 => Ok(Ints::I32(slice(what, start.cast(), count)?)),
            64 => Ok(Ints::I64(slice(what, start.cast(), count)?)),
            other => Err(format!("there are no indices of {other} bits: choose 32 or 64").into()),
        }
    }
}

/// Frees a handle.
///
/// # Safety
///
/// `bag` is null, or came from [`steptime_bag_new`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_bag_free(bag: *mut Bag) {
    // SAFETY: as the caller promises.
    unsafe { free(bag) }
}
