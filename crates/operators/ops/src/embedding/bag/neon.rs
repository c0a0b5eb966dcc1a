//! Bags with NEON: a row's sums stay in registers from the first lookup of a bag to the last.
//!
//! The plain code translates indices, since the compiler vectorizes it for NEON. An output larger than the caches is
//! written like any other, since NEON has no stores that bypass them.

use super::chunk::{Chunk, Output, Slice};
use crate::arch::Neon;
use crate::embedding::codec::scale_and_bias;
use crate::embedding::vector::neon::{Eight, LANES, Values};
use crate::embedding::vector::{BF16, F16, F32, INT4, INT8};
use crate::embedding::{Element, Pooling};
use crate::optimizer::simd::prefetch;

const SUM: u8 = 0;
const WEIGHTED: u8 = 1;
const MAX: u8 = 2;

/// Pools a chunk's bags, slice by slice; with `fetch`, rows are prefetched.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
#[target_feature(enable = "neon")]
pub(super) unsafe fn pool(token: Neon, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    for slice in Slice::cut(chunk.table, chunk.columns.clone(), LANES, 8) {
        let work = Work { token, chunk, slice, out, fetch };
        // SAFETY: by the caller's promise.
        unsafe { by_element(&work) }
    }
}

struct Work<'a> {
    token: Neon,
    chunk: &'a Chunk<'a>,
    slice: Slice,
    out: Output<'a>,
    fetch: bool,
}

#[target_feature(enable = "neon")]
unsafe fn by_element(work: &Work<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        match work.chunk.table.element() {
            Element::F32 => by_mode::<F32>(work),
            Element::F16 => by_mode::<F16>(work),
            Element::Bf16 => by_mode::<BF16>(work),
            Element::Int8(_) => by_mode::<INT8>(work),
            Element::Int4(_) => by_mode::<INT4>(work),
        }
    }
}

#[target_feature(enable = "neon")]
unsafe fn by_mode<const E: u8>(work: &Work<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        match (work.chunk.pooling, work.chunk.weights) {
            (Pooling::Max | Pooling::None, None) => by_width::<E, MAX>(work),
            (_, None) => by_width::<E, SUM>(work),
            (_, Some(_)) => by_width::<E, WEIGHTED>(work),
        }
    }
}

#[target_feature(enable = "neon")]
unsafe fn by_width<const E: u8, const M: u8>(work: &Work<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        match work.slice.columns.div_ceil(LANES) {
            1 => bags::<E, M, 1>(work),
            2 => bags::<E, M, 2>(work),
            3 => bags::<E, M, 3>(work),
            4 => bags::<E, M, 4>(work),
            5 => bags::<E, M, 5>(work),
            6 => bags::<E, M, 6>(work),
            7 => bags::<E, M, 7>(work),
            _ => bags::<E, M, 8>(work),
        }
    }
}

/// Pools `V` vectors of columns, the last of them perhaps in part. One long function, because a bag's sums
/// stay in registers from its first lookup to the store.
#[target_feature(enable = "neon")]
unsafe fn bags<const E: u8, const M: u8, const V: usize>(work: &Work<'_>) {
    let &Work { token, chunk, slice, out, fetch } = work;
    let bytes = chunk.table.bytes();
    let quantized = match chunk.table.element() {
        Element::Int8(kind) | Element::Int4(kind) => Some(kind),
        _ => None,
    };
    let last = slice.columns - (V - 1) * LANES;
    let ahead = if fetch { slice.ahead() } else { 0 };
    let target = Target::new::<E>(chunk, slice);
    let mut at = 0;
    for (bag, &end) in chunk.bags.clone().zip(chunk.ends) {
        let mut acc = [Eight::splat(0.0); V];
        let mut bias_sum = 0.0;
        let further = &chunk.rows[at + ahead..end + ahead];
        let weights = chunk.weights.map_or(&[][..], |all| &all[at..end]);
        for (place, (&row, &far)) in chunk.rows[at..end].iter().zip(further).enumerate() {
            if fetch {
                target.fetch::<E, V>(far);
            }
            let row = &bytes[row as usize..][..slice.byte + slice.bytes];
            let weight = if M == WEIGHTED { weights[place] } else { 1.0 };
            let (scale, bias) = match quantized {
                Some(kind) if E == INT8 || E == INT4 => {
                    let (scale, bias) = scale_and_bias(row, kind);
                    (scale * weight, bias * weight)
                }
                _ => (weight, 0.0),
            };
            bias_sum += bias;
            let (scales, biases) = (Eight::splat(scale), Eight::splat(bias));
            let values = Values::<E>::new(token, &row[slice.byte..], scales, biases);
            for (vector, sum) in acc.iter_mut().enumerate() {
                // SAFETY: all lanes of a vector before the last are columns of the slice; of the last, the first
                // `last` are.
                let value = unsafe {
                    if vector + 1 < V { values.load(vector) } else { values.load_part(vector, last) }
                };
                *sum = match (E, M) {
                    (INT8, MAX) => largest(biases.plus(value, scales), *sum, place),
                    (_, MAX) => largest(value, *sum, place),
                    (INT8, _) => sum.plus(value, scales),
                    (INT4, _) | (_, SUM) => sum.add(value),
                    _ => sum.plus(scales, value),
                };
            }
        }
        if E == INT8 && M != MAX {
            acc.iter_mut().for_each(|sum| *sum = sum.add(Eight::splat(bias_sum)));
        }
        if chunk.pooling == Pooling::Mean && end > at {
            let scale = Eight::splat(1.0 / (end - at) as f32);
            acc.iter_mut().for_each(|sum| *sum = sum.mul(scale));
        }
        at = end;
        // SAFETY: by the caller's promise.
        let (whole, rest) = unsafe { out.row(bag, slice) }.as_chunks_mut::<LANES>();
        whole.iter_mut().zip(acc).for_each(|(to, sum)| sum.store(to));
        if !rest.is_empty() {
            let mut eight = [0.0; LANES];
            acc[V - 1].store(&mut eight);
            rest.copy_from_slice(&eight[..rest.len()]);
        }
    }
}

/// The larger of the two; the sum where they do not compare; the value where it is the first.
#[inline]
#[target_feature(enable = "neon")]
fn largest(value: Eight, sum: Eight, place: usize) -> Eight {
    if place == 0 { value } else { value.larger(sum) }
}

/// Part of a row to prefetch.
struct Target {
    base: *const u8,
    first: usize,
    last: usize,
    /// Whether rows may begin anywhere in a cache line.
    straddles: bool,
    /// Whether scale and bias are far from the slice.
    apart: bool,
}

impl Target {
    fn new<const E: u8>(chunk: &Chunk<'_>, slice: Slice) -> Target {
        let base = chunk.table.bytes().as_ptr();
        let straddles =
            !(base.addr() + slice.byte).is_multiple_of(64) || !chunk.table.pitch().is_multiple_of(64);
        let apart = (E == INT8 || E == INT4) && slice.byte >= 64;
        Target { base, first: slice.byte, last: slice.byte + slice.bytes - 1, straddles, apart }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn fetch<const E: u8, const V: usize>(&self, row: u64) {
        let row = self.base.wrapping_add(row as usize);
        let bits = [32, 16, 16, 8, 4][usize::from(E)];
        for line in 0..(V * LANES * bits / 8).div_ceil(64) {
            prefetch(row.wrapping_add(self.first + line * 64));
        }
        if self.straddles {
            prefetch(row.wrapping_add(self.last));
        }
        if self.apart {
            prefetch(row);
        }
    }
}
