//! Copies rows with contiguous lanes into panels.

use crate::arch::Arch;
#[cfg(target_arch = "x86_64")]
use crate::arch::Avx512;
use crate::gemm::Activation;

/// Element (lane, step) is at `step * step_stride + lane`; so are the outputs of an activation, with their own stride.
#[derive(Clone, Copy)]
pub(crate) struct Across<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) step_stride: usize,
    pub(crate) gate: Option<(&'a [f32], usize, Activation)>,
}

/// Writes panels of `width` lanes one after the other, element (lane, step) of each at `out[step * width + lane]`. Each
/// row is read from end to end, so that its lines and pages are touched once.
///
/// # Panics
///
/// A slice is too short.
pub(crate) fn copy_lanes(
    arch: Arch,
    source: Across,
    lanes: usize,
    steps: usize,
    width: usize,
    out: &mut [f32],
) {
    if lanes == 0 || steps == 0 {
        return;
    }
    let span = |stride: usize| (steps - 1) * stride + lanes;
    assert!(span(source.step_stride) <= source.data.len(), "a source shorter than its panels");
    assert!(source.gate.is_none_or(|(outputs, stride, _)| span(stride) <= outputs.len()));
    assert!(lanes.div_ceil(width) * width * steps <= out.len(), "no room for the panels");
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512; lengths were checked above.
        Arch::Avx512(token) => unsafe { avx512(token, source, lanes, steps, width, out) },
        _ => plain(source, lanes, steps, width, out),
    }
}

fn plain(source: Across, lanes: usize, steps: usize, width: usize, out: &mut [f32]) {
    for step in 0..steps {
        let row = &source.data[step * source.step_stride..][..lanes];
        for (panel, row) in row.chunks(width).enumerate() {
            let out = &mut out[(panel * steps + step) * width..][..width];
            let (used, rest) = out.split_at_mut(row.len());
            used.copy_from_slice(row);
            rest.fill(0.0);
            if let Some((outputs, stride, activation)) = source.gate {
                activation.scale(used, &outputs[step * stride + panel * width..][..used.len()]);
            }
        }
    }
}

/// # Safety
///
/// The lengths that [`copy_lanes`] checks hold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512(_: Avx512, source: Across, lanes: usize, steps: usize, width: usize, out: &mut [f32]) {
    use std::arch::x86_64::*;
    let first_bits = |count: usize| -> __mmask16 { if count >= 16 { 0xFFFF } else { (1 << count) - 1 } };
    let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
    for step in 0..steps {
        let row = source.data.as_ptr().wrapping_add(step * source.step_stride);
        // The hardware prefetcher does not follow rows that are far apart.
        let ahead = row.wrapping_add(8 * source.step_stride);
        for line in (0..lanes).step_by(16) {
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line).cast());
        }
        if let Some((outputs, stride, _)) = source.gate {
            let ahead = outputs.as_ptr().wrapping_add((step + 8) * stride);
            for line in (0..lanes).step_by(16) {
                _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line).cast());
            }
        }
        for (panel, first) in (0..lanes).step_by(width).enumerate() {
            for lane in (0..width).step_by(16) {
                let at = first + lane;
                let load = first_bits(lanes.saturating_sub(at).min(width - lane));
                let place = row.wrapping_add(at);
                // SAFETY: the masks exclude lanes past the last.
                let value = unsafe {
                    match source.gate {
                        None | Some((_, _, Activation::Identity)) => _mm512_maskz_loadu_ps(load, place),
                        Some((outputs, stride, activation)) => {
                            let outputs = outputs.as_ptr().wrapping_add(step * stride + at);
                            let y = _mm512_maskz_loadu_ps(load, outputs);
                            if activation == Activation::Relu {
                                let open = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(load, y, zero);
                                _mm512_maskz_loadu_ps(open, place)
                            } else {
                                let slope = _mm512_mul_ps(y, _mm512_sub_ps(one, y));
                                _mm512_mul_ps(_mm512_maskz_loadu_ps(load, place), slope)
                            }
                        }
                    }
                };
                let place = out.as_mut_ptr().wrapping_add((panel * steps + step) * width + lane);
                // SAFETY: the mask excludes lanes past the width of the panel.
                unsafe { _mm512_mask_storeu_ps(place, first_bits(width - lane), value) };
            }
        }
    }
}
