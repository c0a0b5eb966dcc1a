//! Transposes by tiles, and the choice between plain and vector code.

use steptime_tensor::Element;

use super::plan::Dim;
use crate::arch::Arch;
use crate::shared::Shared;

/// Rows and columns of a tile.
pub(super) const TILE: usize = 16;

/// Rows and columns that are done before the next, whose lines stay in the first-level cache until they are used up.
const BLOCK: usize = 64;

/// A tile of a transpose: `to[i][j] = from[j][i]` for the columns `i` of inputs and the inputs `j`.
pub(super) struct Tile<'a, 'b, T> {
    /// Up to 16 inputs of `columns` elements.
    pub(super) from: &'a [&'a [T]],
    /// Up to 16 outputs, each with one element for each input.
    pub(super) to: &'a mut [&'b mut [T]],
}

/// Makes stores that went past the caches visible to other threads.
pub(super) fn finish_stores() {
    #[cfg(target_arch = "x86_64")]
    super::avx512::fence();
}

/// Asks for the lines of a slice.
pub(super) fn prefetch<T>(run: &[T]) {
    #[cfg(target_arch = "x86_64")]
    super::avx512::prefetch(run);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = run;
}

/// Copies neighbours, past the caches if `stream`.
pub(super) fn copy_run<T: Element>(arch: Arch, from: &[T], to: &mut [T], stream: bool) {
    match arch {
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(token) if stream => super::avx512::stream(token, from, to),
        _ => to.copy_from_slice(from),
    }
}

/// A transpose: element `(row, column)` is at `row + column * columns.from` of the input and `row * rows.to + column` of
/// the output, from `start`.
///
/// # Safety
///
/// No other thread reads or writes these elements of the output, and no two of them are one.
pub(super) unsafe fn transpose<T: Element>(
    arch: Arch,
    from: &[T],
    to: Shared<'_, T>,
    start: (usize, usize),
    rows: Dim,
    columns: Dim,
    stream: bool,
) {
    let stride = columns.from;
    let blocks = (rows.size.div_ceil(BLOCK), columns.size.div_ceil(BLOCK));
    for block in 0..blocks.0 * blocks.1 {
        let cut = |block: usize| (block % blocks.0 * BLOCK, block / blocks.0 * BLOCK);
        let clip =
            |at: (usize, usize)| (at.0..rows.size.min(at.0 + BLOCK), at.1..columns.size.min(at.1 + BLOCK));
        let (block_rows, block_columns) = clip(cut(block));
        for row in block_rows.clone().step_by(TILE) {
            for column in block_columns.clone().step_by(TILE) {
                let row_count = TILE.min(rows.size - row);
                let column_count = TILE.min(columns.size - column);
                let mut inputs = [&from[..0]; TILE];
                for (at, input) in inputs[..column_count].iter_mut().enumerate() {
                    let at = start.0 + row + (column + at) * stride;
                    *input = &from[at..at + row_count];
                }
                let mut outputs: [&mut [T]; TILE] = Default::default();
                for (at, output) in outputs[..row_count].iter_mut().enumerate() {
                    let at = start.1 + (row + at) * rows.to + column;
                    // SAFETY: by the caller's promise; outputs of a tile are different rows.
                    *output = unsafe { to.range(at, column_count) };
                }
                let tile = Tile { from: &inputs[..column_count], to: &mut outputs[..row_count] };
                transpose_tile(arch, tile, stream);
            }
        }
    }
}

fn transpose_tile<T: Element>(arch: Arch, tile: Tile<'_, '_, T>, stream: bool) {
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
