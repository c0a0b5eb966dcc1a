//! Tiles of 16 x 16 elements of 4 bytes in 16 registers, and stores that bypass the caches. All 512-bit unsafe code is
//! here.

use std::arch::x86_64::*;

use steptime_tensor::Element;

use super::tile::{TILE, Tile};
use crate::arch::Avx512;

/// Prefetches the lines of a slice.
pub(super) fn prefetch<T>(run: &[T]) {
    for line in run.chunks((64 / size_of::<T>()).max(1)) {
        // SAFETY: every x86-64 processor has this instruction, and any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Copies contiguous elements with stores that bypass the caches.
pub(super) fn stream<T: Element>(_: Avx512, from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len());
    // Elements before the first whole line; all of them if there is none.
    let head = to.as_ptr().align_offset(64).min(to.len());
    let (from_head, from) = from.split_at(head);
    let (to_head, to) = to.split_at_mut(head);
    to_head.copy_from_slice(from_head);
    let line = 64 / size_of::<T>();
    let lines = to.len() / line;
    // SAFETY: the token proves that the processor has AVX-512; both have `lines` lines, and `to` is aligned to a line.
    unsafe { stream_lines(from.as_ptr().cast(), to.as_mut_ptr().cast(), lines) };
    to[lines * line..].copy_from_slice(&from[lines * line..]);
}

/// # Safety
///
/// Both point to `lines` lines of 64 bytes, and `to` is aligned to a line.
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines(from: *const __m512i, to: *mut __m512i, lines: usize) {
    for line in 0..lines {
        // SAFETY: by the caller's promise; a fence follows.
        unsafe { _mm512_stream_si512(to.add(line), _mm512_loadu_si512(from.add(line))) };
    }
}

/// Transposes a tile of elements of 4 bytes.
pub(super) fn transpose<T: Element>(_: Avx512, tile: Tile<'_, '_, T>, stream: bool) {
    let (inputs, outputs) = (tile.from.len(), tile.to.len());
    assert!(size_of::<T>() == 4 && inputs <= TILE && outputs <= TILE && inputs > 0 && outputs > 0);
    assert!(
        tile.from.iter().all(|row| row.len() == outputs) && tile.to.iter().all(|row| row.len() == inputs)
    );
    let mut from = [tile.from[0].as_ptr().cast::<f32>(); TILE];
    from.iter_mut().zip(tile.from).for_each(|(from, row)| *from = row.as_ptr().cast());
    let mut to = [std::ptr::null_mut::<f32>(); TILE];
    to.iter_mut().zip(tile.to).for_each(|(to, row)| *to = row.as_mut_ptr().cast());
    let stream = stream && inputs == TILE && to.iter().all(|to| to.addr().is_multiple_of(64));
    // SAFETY: the token proves that the processor has AVX-512; lengths and alignment are checked above.
    unsafe { transpose_512(&from, &to, inputs, outputs, stream) };
}

/// # Safety
///
/// The first `inputs` of `from` point to `outputs` elements, the first `outputs` of `to` to `inputs` elements. With
/// `stream`, `to` is aligned to 64 bytes and there are 16 inputs.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn transpose_512(
    from: &[*const f32; TILE],
    to: &[*mut f32; TILE],
    inputs: usize,
    outputs: usize,
    stream: bool,
) {
    let low = |count: usize| ((1u32 << count) - 1) as __mmask16;
    let mut rows = [_mm512_setzero_ps(); TILE];
    for (row, &from) in rows.iter_mut().zip(from).take(inputs) {
        // SAFETY: lanes in the mask are elements of the input; the others are not read.
        *row = unsafe { _mm512_maskz_loadu_ps(low(outputs), from) };
    }
    let columns = transpose_rows(rows);
    for (&column, &to) in columns.iter().zip(to).take(outputs) {
        if stream {
            // SAFETY: 16 elements, aligned by the caller's promise; a fence follows.
            unsafe { _mm512_stream_ps(to, column) };
        } else if inputs == TILE {
            // SAFETY: 16 elements.
            unsafe { _mm512_storeu_ps(to, column) };
        } else {
            // SAFETY: lanes in the mask are elements of the output; the others are not written.
            unsafe { _mm512_mask_storeu_ps(to, low(inputs), column) };
        }
    }
}

/// Columns of 16 rows, by exchanging ever larger halves: pairs, fours, then 128-bit parts twice.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn transpose_rows(rows: [__m512; TILE]) -> [__m512; TILE] {
    let mut fours = rows;
    for at in (0..TILE).step_by(4) {
        let pair = |a: usize, b: usize| {
            let (low, high) = (_mm512_unpacklo_ps(rows[a], rows[b]), _mm512_unpackhi_ps(rows[a], rows[b]));
            (_mm512_castps_pd(low), _mm512_castps_pd(high))
        };
        let ((low_01, high_01), (low_23, high_23)) = (pair(at, at + 1), pair(at + 2, at + 3));
        fours[at] = _mm512_castpd_ps(_mm512_unpacklo_pd(low_01, low_23));
        fours[at + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low_01, low_23));
        fours[at + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high_01, high_23));
        fours[at + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high_01, high_23));
    }
    // `fours[4 g + c]` holds, in part `p`, column `4 p + c` of rows `4 g..4 g + 4`.
    let mut columns = rows;
    for c in 0..4 {
        let [a, b, d, e] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
        let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        let (de_even, de_odd) = (_mm512_shuffle_f32x4::<0x88>(d, e), _mm512_shuffle_f32x4::<0xdd>(d, e));
        columns[c] = _mm512_shuffle_f32x4::<0x88>(ab_even, de_even);
        columns[4 + c] = _mm512_shuffle_f32x4::<0x88>(ab_odd, de_odd);
        columns[8 + c] = _mm512_shuffle_f32x4::<0xdd>(ab_even, de_even);
        columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(ab_odd, de_odd);
    }
    columns
}
