//! Bags with vectors: a row's sums stay in registers from the first lookup of a bag to the last.

use std::ops::Range;

use super::chunk::{Chunk, Output, Slice};
use crate::arch::Code;
use crate::embedding::vector::{BF16, Decode, F16, F32, INT4, INT8, Values, bits};
use crate::embedding::{Element, Pooling, Scale};
use crate::simd::{fence, prefetch};

const SUM: u8 = 0;
const WEIGHTED: u8 = 1;
const MAX: u8 = 2;

/// Pools a chunk's bags, slice by slice; with `fetch`, rows are prefetched.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
pub(super) unsafe fn pool<S: Decode>(s: S, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    for slice in Slice::cut(chunk.table, chunk.columns.clone(), S::LANES, S::VECTORS) {
        let work = Work { s, chunk, slice, out, fetch };
        match chunk.table.element() {
            Element::F32 => by_mode::<S, F32>(&work),
            Element::F16 => by_mode::<S, F16>(&work),
            Element::Bf16 => by_mode::<S, BF16>(&work),
            Element::Int8(_) => by_mode::<S, INT8>(&work),
            Element::Int4(_) => by_mode::<S, INT4>(&work),
        }
    }
    if out.stream {
        fence();
    }
}

/// One slice of a chunk's bags. Made only by [`pool`]: no other code holds its part of the output.
struct Work<'a, S> {
    s: S,
    chunk: &'a Chunk<'a>,
    slice: Slice,
    out: Output<'a>,
    fetch: bool,
}

fn by_mode<S: Decode, const E: u8>(work: &Work<'_, S>) {
    match (work.chunk.pooling, work.chunk.weights) {
        (Pooling::Max | Pooling::None, None) => by_width::<S, E, MAX>(work),
        (_, None) => by_width::<S, E, SUM>(work),
        (_, Some(_)) => by_width::<S, E, WEIGHTED>(work),
    }
}

fn by_width<S: Decode, const E: u8, const M: u8>(work: &Work<'_, S>) {
    match work.slice.columns.div_ceil(S::LANES) {
        1 => work.s.compile(Bags::<S, E, M, 1>(work)),
        2 => work.s.compile(Bags::<S, E, M, 2>(work)),
        3 => work.s.compile(Bags::<S, E, M, 3>(work)),
        4 => work.s.compile(Bags::<S, E, M, 4>(work)),
        5 => work.s.compile(Bags::<S, E, M, 5>(work)),
        6 => work.s.compile(Bags::<S, E, M, 6>(work)),
        7 => work.s.compile(Bags::<S, E, M, 7>(work)),
        9.. if S::VECTORS == 16 => work.s.compile(Bags::<S, E, M, 16>(work)),
        _ => work.s.compile(Bags::<S, E, M, 8>(work)),
    }
}

/// The pooling of `V` vectors of columns.
struct Bags<'a, S, const E: u8, const M: u8, const V: usize>(&'a Work<'a, S>);

impl<S: Decode, const E: u8, const M: u8, const V: usize> Code for Bags<'_, S, E, M, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        bags::<S, E, M, V>(self.0);
    }
}

/// Pools `V` vectors of columns, the last of them perhaps in part. One long function, because a bag's sums stay in
/// registers from its first lookup to the store.
#[inline(always)]
fn bags<S: Decode, const E: u8, const M: u8, const V: usize>(work: &Work<'_, S>) {
    let &Work { s, chunk, slice, out, fetch } = work;
    let last = slice.columns - (V - 1) * S::LANES;
    let table = Rows::<S, E, M, V>::new(s, chunk, slice);
    let mut at = 0;
    for (bag, &end) in chunk.bags.clone().zip(chunk.ends) {
        let (acc, bias) = match (fetch, !S::MASKED && last == S::LANES) {
            (false, false) => table.pool::<false, false>(at..end),
            (false, true) => table.pool::<false, true>(at..end),
            (true, false) => table.pool::<true, false>(at..end),
            (true, true) => table.pool::<true, true>(at..end),
        };
        // Added and multiplied while sums are stored: a separate loop over them would keep them in memory throughout.
        let bias = s.splat(bias);
        let mean = if chunk.pooling == Pooling::Mean && end > at { 1.0 / (end - at) as f32 } else { 1.0 };
        let mean = s.splat(mean);
        at = end;
        // SAFETY: no other code holds these columns of this bag, as the caller of `pool` promised.
        let to = unsafe { out.row(bag, slice) }.as_mut_ptr();
        for (vector, &sum) in acc.iter().enumerate() {
            let sum = if E == INT8 && M != MAX { s.add(sum, bias) } else { sum };
            let sum = if M == MAX { sum } else { s.mul(sum, mean) };
            // SAFETY: the row of the output has all columns of the slice; where output streams, these are whole
            // vectors at multiples of their size.
            unsafe {
                let to = to.add(vector * S::LANES);
                if out.stream {
                    s.stream(to, sum);
                } else if vector + 1 < V {
                    s.write(to, sum);
                } else {
                    s.write_first(to, sum, last);
                }
            }
        }
    }
}

/// The rows of a chunk's lookups: `V` vectors of their columns.
struct Rows<'a, S, const E: u8, const M: u8, const V: usize> {
    s: S,
    /// The table.
    bytes: &'a [u8],
    /// First byte of the row of each lookup, and of more lookups to prefetch.
    rows: &'a [u64],
    weights: &'a [f32],
    slice: Slice,
    scale: Scale,
    /// Number of rows between the prefetched one and the one in use.
    ahead: usize,
    /// Whether rows may begin anywhere in a cache line.
    straddles: bool,
}

impl<'a, S: Decode, const E: u8, const M: u8, const V: usize> Rows<'a, S, E, M, V> {
    #[inline(always)]
    fn new(s: S, chunk: &Chunk<'a>, slice: Slice) -> Self {
        let scale = match chunk.table.element() {
            Element::Int8(scale) | Element::Int4(scale) => scale,
            _ => Scale::F32,
        };
        let bytes = chunk.table.bytes();
        let straddles = !(bytes.as_ptr().addr() + slice.byte).is_multiple_of(64)
            || !chunk.table.pitch().is_multiple_of(64);
        let weights = chunk.weights.unwrap_or_default();
        Rows { s, bytes, rows: chunk.rows, weights, slice, scale, ahead: slice.ahead(), straddles }
    }

    /// Pools a bag's lookups, and returns the bias still to be added. With `FETCH`, rows ahead are prefetched; with
    /// `WHOLE`, all lanes of the last vector are columns.
    #[inline(always)]
    fn pool<const FETCH: bool, const WHOLE: bool>(&self, bag: Range<usize>) -> ([S::V; V], f32) {
        let s = self.s;
        let last = self.slice.columns - (V - 1) * S::LANES;
        let mut acc = [s.splat(0.0); V];
        let mut bias_sum = 0.0;
        let ahead = if FETCH { self.ahead } else { 0 };
        let further = &self.rows[bag.start + ahead..bag.end + ahead];
        let weights = if M == WEIGHTED { &self.weights[bag.clone()] } else { &[] };
        for (place, (&row, &far)) in self.rows[bag].iter().zip(further).enumerate() {
            if FETCH {
                self.fetch(far);
            }
            let row = &self.bytes[row as usize..][..self.slice.byte + self.slice.bytes];
            let weight = if M == WEIGHTED { weights[place] } else { 1.0 };
            let (scale, bias) = if E == INT8 || E == INT4 {
                let (scale, bias) = s.scale_and_bias(row, self.scale);
                (scale * weight, bias * weight)
            } else {
                (weight, 0.0)
            };
            bias_sum += bias;
            let (scales, biases) = (s.splat(scale), s.splat(bias));
            let values = Values::<S, E>::new(s, &row[self.slice.byte..], scales, biases);
            for (vector, sum) in acc.iter_mut().enumerate() {
                // SAFETY: all lanes of a vector before the last are columns of the slice; of the last, the first
                // `last` are, with `WHOLE` all.
                let value = unsafe {
                    if WHOLE || vector + 1 < V { values.load(vector) } else { values.load_part(vector, last) }
                };
                *sum = match (E, M) {
                    (INT8, MAX) => largest(s, s.mul_add(value, scales, biases), *sum, place),
                    (_, MAX) => largest(s, value, *sum, place),
                    (INT8, _) => s.mul_add(value, scales, *sum),
                    (INT4, _) | (_, SUM) => s.add(*sum, value),
                    _ => s.mul_add(scales, value, *sum),
                };
            }
        }
        (acc, bias_sum)
    }

    /// Prefetches the slice of a row.
    #[inline(always)]
    fn fetch(&self, row: u64) {
        let row = self.bytes.as_ptr().wrapping_add(row as usize);
        for line in 0..(V * S::LANES * bits(E) / 8).div_ceil(64) {
            prefetch(row.wrapping_add(self.slice.byte + line * 64));
        }
        if self.straddles {
            prefetch(row.wrapping_add(self.slice.byte + self.slice.bytes - 1));
        }
        // Scale and bias are far from a slice that is not the first.
        if (E == INT8 || E == INT4) && self.slice.byte >= 64 {
            prefetch(row);
        }
    }
}

/// The larger of the two; the sum where they do not compare; the value where it is the first.
#[inline(always)]
fn largest<S: Decode>(s: S, value: S::V, sum: S::V, place: usize) -> S::V {
    if place == 0 { value } else { s.larger(value, sum) }
}
