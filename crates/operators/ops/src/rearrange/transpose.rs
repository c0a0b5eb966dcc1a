//! Transposes by tiles.

use steptime_tensor::Element;

use super::dispatch::transpose_tile;
use super::plan::Dim;
use super::tile::{TILE, Tile};
use crate::arch::Arch;
use crate::shared::Shared;

/// Number of rows and columns of a block, whose lines stay in the first-level cache until they are used up.
const BLOCK: usize = 64;

/// Transposes: element `(row, column)` is at `row + column * columns.from` of the input and `row * rows.to + column` of
/// the output, from `start`.
///
/// # Safety
///
/// No other thread reads or writes these elements of the output, and no two of them share a place.
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
