//! The gradient of weights with AVX-512.

use std::arch::x86_64::*;

use super::Work;
use crate::arch::Avx512;
use crate::embedding::Element;
use crate::embedding::vector::avx2::scale_and_bias;
use crate::embedding::vector::avx512::{LANES, Values};
use crate::embedding::vector::{BF16, F16, F32, INT4, INT8};

/// Bytes on their way from memory ahead of the row in use.
const BYTES_AHEAD: usize = 4096;

/// The products of some bags of one table, whose lookups are in range.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn products(_: Avx512, work: &Work<'_>, out: &mut [f32]) {
    match work.table.element() {
        Element::F32 => fill::<F32>(work, out),
        Element::F16 => fill::<F16>(work, out),
        Element::Bf16 => fill::<BF16>(work, out),
        Element::Int8(_) => fill::<INT8>(work, out),
        Element::Int4(_) => fill::<INT4>(work, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn fill<const E: u8>(work: &Work<'_>, out: &mut [f32]) {
    let (table, indices) = (work.table, work.lookups.indices);
    let ahead = (BYTES_AHEAD / table.pitch()).clamp(1, 64);
    let mut out = out.iter_mut();
    for bag in work.bags.clone() {
        let places = work.lookups.bag(bag);
        let grad = work.grad(bag);
        let scale = if work.mean { 1.0 / places.len() as f32 } else { 1.0 };
        for (place, out) in places.zip(&mut out) {
            if place + ahead < indices.len() {
                let far =
                    table.bytes().as_ptr().wrapping_add(indices.at(place + ahead) as usize * table.pitch());
                for line in (0..table.row_bytes()).step_by(64) {
                    _mm_prefetch::<_MM_HINT_T1>(far.wrapping_add(line).cast());
                }
            }
            *out = dot::<E>(table.element(), table.row(indices.at(place) as usize), grad) * scale;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn dot<const E: u8>(element: Element, row: &[u8], grad: &[f32]) -> f32 {
    let (scale, bias, start) = match element {
        Element::Int8(kind) | Element::Int4(kind) => {
            let (scale, bias) = scale_and_bias!(row, kind);
            (scale, bias, kind.bytes())
        }
        _ => (1.0, 0.0, 0),
    };
    let (scales, biases) = (_mm512_set1_ps(scale), _mm512_set1_ps(bias));
    let values = Values::<E>::new(&row[start..], scales, biases);
    let mut sum = _mm512_setzero_ps();
    let whole = grad.len() / LANES;
    for vector in 0..whole {
        // SAFETY: both have 16 columns for this vector.
        let (grad, value) =
            unsafe { (_mm512_loadu_ps(grad.as_ptr().add(vector * LANES)), values.load(vector)) };
        sum = _mm512_fmadd_ps(grad, finish::<E>(value, scales, biases), sum);
    }
    let rest = grad.len() % LANES;
    if rest > 0 {
        let mask = (1_u16 << rest) - 1;
        // SAFETY: both have these columns for the last vector.
        let (grad, value) = unsafe {
            (_mm512_maskz_loadu_ps(mask, grad.as_ptr().add(whole * LANES)), values.load_part(whole, mask))
        };
        sum = _mm512_fmadd_ps(grad, finish::<E>(value, scales, biases), sum);
    }
    let half = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps::<1>(sum));
    let half = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
    let half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)))
}

/// Returns the values of a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn finish<const E: u8>(value: __m512, scales: __m512, biases: __m512) -> __m512 {
    if E == INT8 { _mm512_fmadd_ps(value, scales, biases) } else { value }
}
