//! The version of a step for the instructions in use.

use steptime_tensor::Element;

#[cfg(target_arch = "x86_64")]
use super::tile::TILE;
use super::tile::Tile;
use crate::arch::Arch;

/// Prefetches the lines of a slice.
pub(super) fn prefetch<T>(run: &[T]) {
    #[cfg(target_arch = "x86_64")]
    super::avx512::prefetch(run);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = run;
}

/// Copies contiguous elements, bypassing the caches if `stream`.
pub(super) fn copy_run<T: Element>(arch: Arch, from: &[T], to: &mut [T], stream: bool) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) if stream => super::avx512::stream(token, from, to),
        _ => {
            let _ = stream;
            to.copy_from_slice(from);
        }
    }
}

/// Transposes a tile, bypassing the caches if `stream`.
pub(super) fn transpose_tile<T: Element>(arch: Arch, tile: Tile<'_, '_, T>, stream: bool) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) if size_of::<T>() == 4 => super::avx512::transpose(token, tile, stream),
        #[cfg(target_arch = "x86_64")]
        Arch::Avx2(token) if size_of::<T>() == 4 && tile.from.len() == TILE && tile.to.len() == TILE => {
            super::avx2::transpose(token, tile);
        }
        _ => {
            let _ = stream;
            for (i, to) in tile.to.iter_mut().enumerate() {
                to.iter_mut().zip(tile.from).for_each(|(to, from)| *to = from[i]);
            }
        }
    }
}
