//! Tiles of 16 x 16 elements of 4 bytes as four of 8 x 8. All 256-bit unsafe code is here.

use std::arch::x86_64::*;

use steptime_tensor::Element;

use super::tile::{TILE, Tile};
use crate::arch::Avx2;

/// Transposes a whole tile of elements of 4 bytes.
pub(super) fn transpose<T: Element>(_: Avx2, tile: Tile<'_, '_, T>) {
    assert!(size_of::<T>() == 4 && tile.from.len() == TILE && tile.to.len() == TILE);
    assert!(tile.from.iter().all(|row| row.len() == TILE) && tile.to.iter().all(|row| row.len() == TILE));
    let mut from = [std::ptr::null::<f32>(); TILE];
    from.iter_mut().zip(tile.from).for_each(|(from, row)| *from = row.as_ptr().cast());
    let mut to = [std::ptr::null_mut::<f32>(); TILE];
    to.iter_mut().zip(tile.to).for_each(|(to, row)| *to = row.as_mut_ptr().cast());
    for row in [0, 8] {
        for column in [0, 8] {
            // SAFETY: the token proves that the processor has AVX2, FMA and F16C; each is to 16 elements.
            unsafe { transpose_256(&from, &to, row, column) };
        }
    }
}

/// Transposes columns `column..column + 8` of inputs `row..row + 8`.
///
/// # Safety
///
/// All are to 16 elements.
#[target_feature(enable = "avx2")]
unsafe fn transpose_256(from: &[*const f32; TILE], to: &[*mut f32; TILE], row: usize, column: usize) {
    // SAFETY: by the caller's promise; `column` is 0 or 8.
    let load = |at: usize| unsafe { _mm256_loadu_ps(from[row + at].add(column)) };
    let [a, b] = [0, 4].map(|at| fours([load(at), load(at + 1), load(at + 2), load(at + 3)]));
    for at in 0..4 {
        let (low, high) =
            (_mm256_permute2f128_ps::<0x20>(a[at], b[at]), _mm256_permute2f128_ps::<0x31>(a[at], b[at]));
        // SAFETY: by the caller's promise; `row` is 0 or 8.
        unsafe {
            _mm256_storeu_ps(to[column + at].add(row), low);
            _mm256_storeu_ps(to[column + 4 + at].add(row), high);
        }
    }
}

/// Transposes four rows: column `c` in the lower half and column `4 + c` in the upper, for `c` in 0..4.
#[inline]
#[target_feature(enable = "avx2")]
fn fours([a, b, c, d]: [__m256; 4]) -> [__m256; 4] {
    let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    [
        _mm256_shuffle_ps::<0x44>(ab_low, cd_low),
        _mm256_shuffle_ps::<0xee>(ab_low, cd_low),
        _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
        _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
    ]
}
