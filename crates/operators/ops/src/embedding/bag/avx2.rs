//! Bags with AVX2: a row's sums stay in registers from the first lookup of a bag to the last.

use std::arch::x86_64::*;

use super::chunk::{Chunk, Output, Slice, translate};
use crate::arch::Avx2;
use crate::embedding::vector::avx2::scale_and_bias;
use crate::embedding::vector::avx2::{LANES, Values};
use crate::embedding::vector::{BF16, F16, F32, INT4, INT8};
use crate::embedding::{Element, Ints, Pooling};

const SUM: u8 = 0;
const WEIGHTED: u8 = 1;
const MAX: u8 = 2;

/// See [`translate`].
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn translate_avx2(_: Avx2, indices: Ints<'_>, rows: u64, pitch: u64, out: &mut [u64]) -> bool {
    translate(indices, rows, pitch, out)
}

/// Pools a chunk's bags, slice by slice; with `fetch`, rows are prefetched.
///
/// # Safety
///
/// No other code holds the columns of this table in the output rows of these bags.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn pool(_: Avx2, chunk: &Chunk<'_>, out: Output<'_>, fetch: bool) {
    for slice in Slice::cut(chunk.table, chunk.columns.clone(), LANES, 8) {
        let work = Work { chunk, slice, out, fetch };
        // SAFETY: by the caller's promise.
        unsafe { by_element(&work) }
    }
    if out.stream {
        _mm_sfence();
    }
}

struct Work<'a> {
    chunk: &'a Chunk<'a>,
    slice: Slice,
    out: Output<'a>,
    fetch: bool,
}

#[target_feature(enable = "avx2,fma,f16c")]
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

#[target_feature(enable = "avx2,fma,f16c")]
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

#[target_feature(enable = "avx2,fma,f16c")]
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
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn bags<const E: u8, const M: u8, const V: usize>(work: &Work<'_>) {
    let &Work { chunk, slice, out, fetch } = work;
    let bytes = chunk.table.bytes();
    let quantized = match chunk.table.element() {
        Element::Int8(kind) | Element::Int4(kind) => Some(kind),
        _ => None,
    };
    let last = slice.columns - (V - 1) * LANES;
    let ahead = if fetch { slice.ahead() } else { 0 };
    let target = Target::new::<E, V>(chunk, slice);
    let mut at = 0;
    for (bag, &end) in chunk.bags.clone().zip(chunk.ends) {
        let mut acc = [_mm256_setzero_ps(); V];
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
                    let (scale, bias) = scale_and_bias!(row, kind);
                    (scale * weight, bias * weight)
                }
                _ => (weight, 0.0),
            };
            bias_sum += bias;
            let (scales, biases) = (_mm256_set1_ps(scale), _mm256_set1_ps(bias));
            let values = Values::<E>::new(&row[slice.byte..], scales, biases);
            for (vector, sum) in acc.iter_mut().enumerate() {
                // SAFETY: all lanes of a vector before the last are columns of the slice; of the last, the first
                // `last` are.
                let value = unsafe {
                    if vector + 1 < V { values.load(vector) } else { values.load_part(vector, last) }
                };
                *sum = match (E, M) {
                    (INT8, MAX) => largest(_mm256_fmadd_ps(value, scales, biases), *sum, place),
                    (_, MAX) => largest(value, *sum, place),
                    (INT8, _) => _mm256_fmadd_ps(value, scales, *sum),
                    (INT4, _) | (_, SUM) => _mm256_add_ps(*sum, value),
                    _ => _mm256_fmadd_ps(scales, value, *sum),
                };
            }
        }
        if E == INT8 && M != MAX {
            acc.iter_mut().for_each(|sum| *sum = _mm256_add_ps(*sum, _mm256_set1_ps(bias_sum)));
        }
        if chunk.pooling == Pooling::Mean && end > at {
            let scale = _mm256_set1_ps(1.0 / (end - at) as f32);
            acc.iter_mut().for_each(|sum| *sum = _mm256_mul_ps(*sum, scale));
        }
        at = end;
        // SAFETY: by the caller's promise.
        let to = unsafe { out.row(bag, slice) }.as_mut_ptr();
        for (vector, &sum) in acc.iter().enumerate() {
            // SAFETY: the row of the output has all columns of the slice; where output streams, these are whole
            // vectors at multiples of 64 bytes.
            unsafe {
                let to = to.add(vector * LANES);
                if out.stream {
                    _mm256_stream_ps(to, sum);
                } else if vector + 1 < V {
                    _mm256_storeu_ps(to, sum);
                } else {
                    store_part(to, sum, last);
                }
            }
        }
    }
}

/// The larger of the two; the sum where they do not compare; the value where it is the first.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn largest(value: __m256, sum: __m256, place: usize) -> __m256 {
    if place == 0 { value } else { _mm256_max_ps(value, sum) }
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
    fn new<const E: u8, const V: usize>(chunk: &Chunk<'_>, slice: Slice) -> Target {
        let base = chunk.table.bytes().as_ptr();
        let straddles =
            !(base.addr() + slice.byte).is_multiple_of(64) || !chunk.table.pitch().is_multiple_of(64);
        let apart = (E == INT8 || E == INT4) && slice.byte >= 64;
        Target { base, first: slice.byte, last: slice.byte + slice.bytes - 1, straddles, apart }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn fetch<const E: u8, const V: usize>(&self, row: u64) {
        let row = self.base.wrapping_add(row as usize);
        let bits = [32, 16, 16, 8, 4][usize::from(E)];
        for line in 0..(V * LANES * bits / 8).div_ceil(64) {
            _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(self.first + line * 64).cast());
        }
        if self.straddles {
            _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(self.last).cast());
        }
        if self.apart {
            _mm_prefetch::<_MM_HINT_T1>(row.cast());
        }
    }
}

/// # Safety
///
/// `columns` floats, of 1 to 8, can be written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_part(to: *mut f32, values: __m256, columns: usize) {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(columns as i32), lanes);
    // SAFETY: the masked lanes can be written, by the caller's promise.
    unsafe { _mm256_maskstore_ps(to, mask, values) }
}
