//! The gradient of weights with NEON.

use std::arch::aarch64::*;

use super::Work;
use crate::arch::Neon;
use crate::embedding::Element;
use crate::embedding::codec::scale_and_bias;
use crate::embedding::vector::neon::{Eight, LANES, Values};
use crate::embedding::vector::{BF16, F16, F32, INT4, INT8};
use crate::optimizer::simd::prefetch;

/// Bytes on their way from memory ahead of the row in use.
const BYTES_AHEAD: usize = 4096;

/// The products of some bags of one table, whose lookups are in range.
#[target_feature(enable = "neon")]
pub(super) fn products(token: Neon, work: &Work<'_>, out: &mut [f32]) {
    match work.table.element() {
        Element::F32 => fill::<F32>(token, work, out),
        Element::F16 => fill::<F16>(token, work, out),
        Element::Bf16 => fill::<BF16>(token, work, out),
        Element::Int8(_) => fill::<INT8>(token, work, out),
        Element::Int4(_) => fill::<INT4>(token, work, out),
    }
}

#[target_feature(enable = "neon")]
fn fill<const E: u8>(token: Neon, work: &Work<'_>, out: &mut [f32]) {
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
                    prefetch(far.wrapping_add(line));
                }
            }
            *out = dot::<E>(token, table.element(), table.row(indices.at(place) as usize), grad) * scale;
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn dot<const E: u8>(token: Neon, element: Element, row: &[u8], grad: &[f32]) -> f32 {
    let (scale, bias, start) = match element {
        Element::Int8(kind) | Element::Int4(kind) => {
            let (scale, bias) = scale_and_bias(row, kind);
            (scale, bias, kind.bytes())
        }
        _ => (1.0, 0.0, 0),
    };
    let (scales, biases) = (Eight::splat(scale), Eight::splat(bias));
    let values = Values::<E>::new(token, &row[start..], scales, biases);
    // Sum `j % 16` is lane `j % 8` of the first of these for even vectors and of the second for odd ones.
    let mut sums = [Eight::splat(0.0); 2];
    let (whole, rest) = grad.as_chunks::<LANES>();
    for (vector, grad) in whole.iter().enumerate() {
        // SAFETY: the row has as many columns as the gradient: 8 for this vector.
        let value = finish::<E>(unsafe { values.load(vector) }, scales, biases);
        let sum = &mut sums[vector % 2];
        *sum = sum.plus(Eight::load(grad), value);
    }
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        // SAFETY: the row has these columns for the last vector.
        let value = finish::<E>(unsafe { values.load_part(whole.len(), rest.len()) }, scales, biases);
        let sum = &mut sums[whole.len() % 2];
        *sum = sum.plus(Eight::load(&last), value);
    }
    let Eight([low, high]) = sums[0].add(sums[1]);
    let four = vaddq_f32(low, high);
    let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}

/// Returns the values of a vector.
#[inline]
#[target_feature(enable = "neon")]
fn finish<const E: u8>(value: Eight, scales: Eight, biases: Eight) -> Eight {
    if E == INT8 { biases.plus(value, scales) } else { value }
}
