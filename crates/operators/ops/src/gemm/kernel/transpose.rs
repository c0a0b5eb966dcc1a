//! Transposes consecutive rows into the interleaved order of a packed panel.

use crate::arch::Arch;

/// Writes element (lane, step) of `source`, at `lane * lane_stride + step`, to `out[step * width + lane]`, and zeros for
/// the lanes from `lanes` up to `width`.
///
/// # Panics
///
/// `source` or `out` is too short, or there are more lanes than `width`.
pub(crate) fn transpose(
    arch: Arch,
    source: &[f32],
    lane_stride: usize,
    lanes: usize,
    steps: usize,
    width: usize,
    out: &mut [f32],
) {
    if lanes == 0 || steps == 0 {
        out.fill(0.0);
        return;
    }
    assert!(
        lanes <= width && (lanes - 1) * lane_stride + steps <= source.len() && steps * width <= out.len()
    );
    match arch {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512; lengths were checked above.
        Arch::Avx512(token) => unsafe { x86::avx512(token, source, lane_stride, lanes, steps, width, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C; lengths as above.
        Arch::Avx2(token) => unsafe { x86::avx2(token, source, lane_stride, lanes, steps, width, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves that the processor has NEON; lengths as above.
        Arch::Neon(token) => unsafe {
            super::neon::transpose(token, source, lane_stride, lanes, steps, width, out)
        },
        _ => {
            for (step, out) in out.chunks_exact_mut(width).take(steps).enumerate() {
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if lane < lanes { source[lane * lane_stride + step] } else { 0.0 };
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::arch::{Avx2, Avx512, first_lanes};

    /// Transposes squares of 16 x 16.
    ///
    /// # Safety
    ///
    /// The conditions of [`transpose`](super::transpose) hold, with at least one lane and one step.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(
        _: Avx512,
        source: &[f32],
        lane_stride: usize,
        lanes: usize,
        steps: usize,
        width: usize,
        out: &mut [f32],
    ) {
        let first_bits = |count: usize| -> __mmask16 { if count >= 16 { 0xFFFF } else { (1 << count) - 1 } };
        for step in (0..steps).step_by(16) {
            let load = first_bits(steps - step);
            for lane in (0..width).step_by(16) {
                let store = first_bits(width - lane);
                let mut rows = [_mm512_setzero_ps(); 16];
                for (row, value) in rows.iter_mut().enumerate() {
                    if lane + row < lanes {
                        let place = source.as_ptr().wrapping_add((lane + row) * lane_stride + step);
                        // SAFETY: the mask excludes steps past the last.
                        *value = unsafe { _mm512_maskz_loadu_ps(load, place) };
                    }
                }
                let rows = square16(rows);
                for (row, &value) in rows.iter().enumerate().take(steps - step) {
                    let place = out.as_mut_ptr().wrapping_add((step + row) * width + lane);
                    // SAFETY: the mask excludes lanes past the width of the panel.
                    unsafe { _mm512_mask_storeu_ps(place, store, value) };
                }
            }
        }
    }

    /// The transpose of 16 rows of 16: pairs, fours, then quarters of registers twice.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn square16(rows: [__m512; 16]) -> [__m512; 16] {
        let mut fours = [_mm512_setzero_ps(); 16];
        for four in 0..4 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|row| rows[four * 4 + row]);
            let (ab_low, ab_high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (cd_low, cd_high) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            let wide = |value| _mm512_castps_pd(value);
            let narrow = |value| _mm512_castpd_ps(value);
            fours[four * 4] = narrow(_mm512_unpacklo_pd(wide(ab_low), wide(cd_low)));
            fours[four * 4 + 1] = narrow(_mm512_unpackhi_pd(wide(ab_low), wide(cd_low)));
            fours[four * 4 + 2] = narrow(_mm512_unpacklo_pd(wide(ab_high), wide(cd_high)));
            fours[four * 4 + 3] = narrow(_mm512_unpackhi_pd(wide(ab_high), wide(cd_high)));
        }
        let mut out = rows;
        for column in 0..4 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|four| fours[four * 4 + column]);
            let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
            let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xDD>(c, d));
            out[column] = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
            out[4 + column] = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
            out[8 + column] = _mm512_shuffle_f32x4::<0xDD>(ab_even, cd_even);
            out[12 + column] = _mm512_shuffle_f32x4::<0xDD>(ab_odd, cd_odd);
        }
        out
    }

    /// Transposes squares of 8 x 8.
    ///
    /// # Safety
    ///
    /// As for [`avx512`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(
        _: Avx2,
        source: &[f32],
        lane_stride: usize,
        lanes: usize,
        steps: usize,
        width: usize,
        out: &mut [f32],
    ) {
        for step in (0..steps).step_by(8) {
            let count = (steps - step).min(8);
            let load = first_lanes(count);
            for lane in (0..width).step_by(8) {
                let store = first_lanes((width - lane).min(8));
                let mut rows = [_mm256_setzero_ps(); 8];
                for (row, value) in rows.iter_mut().enumerate() {
                    if lane + row < lanes {
                        let place = source.as_ptr().wrapping_add((lane + row) * lane_stride + step);
                        // SAFETY: the mask excludes steps past the last.
                        *value = unsafe { _mm256_maskload_ps(place, load) };
                    }
                }
                let rows = square8(rows);
                for (row, &value) in rows.iter().enumerate().take(count) {
                    let place = out.as_mut_ptr().wrapping_add((step + row) * width + lane);
                    // SAFETY: the mask excludes lanes past the width of the panel.
                    unsafe {
                        if lane + 8 <= width {
                            _mm256_storeu_ps(place, value);
                        } else {
                            _mm256_maskstore_ps(place, store, value);
                        }
                    }
                }
            }
        }
    }

    /// The transpose of 8 rows of 8.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn square8(rows: [__m256; 8]) -> [__m256; 8] {
        let mut fours = [_mm256_setzero_ps(); 8];
        for four in 0..2 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|row| rows[four * 4 + row]);
            let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            fours[four * 4] = _mm256_shuffle_ps::<0x44>(ab_low, cd_low);
            fours[four * 4 + 1] = _mm256_shuffle_ps::<0xEE>(ab_low, cd_low);
            fours[four * 4 + 2] = _mm256_shuffle_ps::<0x44>(ab_high, cd_high);
            fours[four * 4 + 3] = _mm256_shuffle_ps::<0xEE>(ab_high, cd_high);
        }
        let mut out = rows;
        for column in 0..4 {
            let (a, b) = (fours[column], fours[4 + column]);
            out[column] = _mm256_permute2f128_ps::<0x20>(a, b);
            out[4 + column] = _mm256_permute2f128_ps::<0x31>(a, b);
        }
        out
    }
}
