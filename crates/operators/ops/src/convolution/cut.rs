//! Partition of a product of patches and weights for caches and threads. The result does not depend on it.

use crate::Isa;
use crate::gemm::{Machine, tile_cols, tile_rows};

/// Largest number of terms that are added before sums go back to memory: a panel of them stays in the first-level
/// cache.
const MOST_TERMS: usize = 384;

/// Half cycles to copy an element into a block of patches.
const COPY: usize = 1;

/// Bytes of packed weights per cycle from the caches behind the second level.
const BYTES: usize = 8;

/// Cycles to begin and to store a register tile.
const TILE: usize = 40;

/// The number of pixels, lanes of weights and terms in each group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) groups: usize,
    pub(super) pixels: usize,
    pub(super) lanes: usize,
    pub(super) terms: usize,
}

/// Sizes of tiles, blocks and parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Pixels of a register tile.
    pub(super) pixel_tile: usize,
    /// Lanes of weights of a register tile.
    pub(super) lane_tile: usize,
    /// Terms of a block.
    pub(super) depth: usize,
    /// Pixels of a part, in whole tiles.
    pub(super) pixels: usize,
    /// Lanes of a part, in whole tiles.
    pub(super) lanes: usize,
    /// Lanes whose panels stay in the second-level cache, in whole tiles.
    pub(super) chunk: usize,
}

/// Equal blocks of at most `most`.
pub(super) fn even(total: usize, most: usize) -> usize {
    total.div_ceil(total.div_ceil(most.max(1)).max(1)).max(1)
}

/// Number of terms of a block. It depends on the number of terms alone, since sums are split there.
pub(super) fn depth(terms: usize) -> usize {
    even(terms, MOST_TERMS)
}

impl Cut {
    /// The partition for this machine; pixels are the columns of tiles if `across`, otherwise their rows.
    pub(super) fn new(isa: Isa, threads: usize, across: bool, shape: Shape) -> Cut {
        let machine = Machine::detect(isa);
        let (rows, cols) = (tile_rows(isa), tile_cols(isa));
        let (pixel_tile, lane_tile) =
            if across { (cols, even(shape.lanes, rows)) } else { (even(shape.pixels, rows), cols) };
        let depth = depth(shape.terms);
        let l2 = machine.caches[1].bytes / size_of::<f32>();
        let panels = shape.pixels.div_ceil(pixel_tile).max(1);
        let most = (l2 / 2 / depth / pixel_tile).clamp(1, panels);
        let lane_panels = shape.lanes.div_ceil(lane_tile).max(1);
        let rate = machine.lanes * machine.fma_rate;
        // Each tile of a part takes its multiply-adds, or the latency between dependent sums.
        let step = (pixel_tile * lane_tile).div_ceil(rate).max(machine.fma_latency);
        let tile = step * shape.terms + TILE * shape.terms.div_ceil(depth);
        let price = |down: usize, lanes: usize| {
            let copies = down * pixel_tile * shape.terms * COPY / 2;
            let read = lanes * lane_tile * shape.terms * size_of::<f32>() / BYTES;
            let parts = panels.div_ceil(down) * lane_panels.div_ceil(lanes) * shape.groups;
            (down * lanes * tile + copies + read) * parts.div_ceil(threads.max(1))
        };
        let mut best = (usize::MAX, 1, lane_panels);
        let mut shares = 1;
        while shares <= lane_panels.min(threads.max(1)) {
            let lanes = lane_panels.div_ceil(shares);
            for down in 1..=most {
                let cycles = price(down, lanes);
                if cycles <= best.0 {
                    best = (cycles, down, lanes);
                }
            }
            shares *= 2;
        }
        let (_, down, lanes) = best;
        let chunk = (l2 / 4 / depth / lane_tile).clamp(1, lanes) * lane_tile;
        Cut { pixel_tile, lane_tile, depth, pixels: down * pixel_tile, lanes: lanes * lane_tile, chunk }
    }
}

/// Floats from a row of a block to the next: whole cache lines, and an odd number of them, so that rows do not compete
/// for the same sets of a cache.
pub(super) fn pitch(row: usize) -> usize {
    const LINE: usize = 16;
    (row.div_ceil(LINE) | 1) * LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_any_shape() {
        for isa in Isa::ALL {
            for (groups, pixels, lanes, terms) in
                [(1, 0, 1, 0), (1, 1, 1, 1), (32, 3136, 4, 36), (1, 784, 512, 4608), (1, 50176, 64, 147)]
            {
                for (threads, across) in [(1, true), (16, true), (2, false), (16, false)] {
                    let cut = Cut::new(isa, threads, across, Shape { groups, pixels, lanes, terms });
                    assert!(cut.depth >= 1 && cut.depth <= MOST_TERMS && cut.chunk <= cut.lanes, "{cut:?}");
                    assert!(cut.pixels.is_multiple_of(cut.pixel_tile) && cut.pixels > 0, "{cut:?}");
                    assert!(
                        cut.lanes.is_multiple_of(cut.lane_tile) && cut.chunk.is_multiple_of(cut.lane_tile)
                    );
                }
            }
        }
    }

    #[test]
    fn rows_of_blocks_lie_an_odd_number_of_lines_apart() {
        assert_eq!([1, 16, 17, 33, 256].map(pitch), [16, 16, 48, 48, 272]);
    }
}
