//! Register tiles of one size, one after the other: below each other with the same panel of B, or across with the same
//! rows of A.

use super::{Store, Strip, Window, most_rows};
use crate::Isa;
use crate::arch::Arch;

/// Tiles of one size in a row or a column.
pub(crate) struct Sweep<'a, 'c> {
    /// Number of terms of each sum.
    pub(crate) k: usize,
    /// Number of tiles.
    pub(crate) count: usize,
    /// Number of rows of each.
    pub(crate) rows: usize,
    /// Number of columns of each.
    pub(crate) cols: usize,
    /// Whether they are below each other.
    pub(crate) down: bool,
    /// A for the first tile.
    pub(crate) a: Strip<'a>,
    /// Floats from there to A of the next tile.
    pub(crate) a_next: usize,
    /// B for the first tile.
    pub(crate) b: Strip<'a>,
    /// Floats from there to B of the next tile.
    pub(crate) b_next: usize,
    /// C of all tiles.
    pub(crate) c: Window<'c>,
    /// Sums of the earlier steps, in the order of C; `None` for the first steps. They may be in C.
    pub(crate) sums: Option<Window<'c>>,
}

impl<'a, 'c> Sweep<'a, 'c> {
    /// # Panics
    ///
    /// A tile is larger than the registers, a strip is too short, or a tile leaves the window.
    pub(super) fn check(&self, arch: Arch, store: &Store) {
        let Sweep { k, count, rows, cols, .. } = *self;
        let isa = arch.isa();
        assert!(rows >= 1 && cols >= 1 && rows <= most_rows(isa, cols), "tile size");
        let (down, across) = if self.down { (count, 1) } else { (1, count) };
        assert!(
            rows * down <= self.c.rows() && cols * across <= self.c.cols(),
            "a tile outside of its window"
        );
        if let Some(sums) = &self.sums {
            let holds = rows * down <= sums.rows() && cols * across <= sums.cols();
            assert!(holds && sums.has_rows() && isa == Isa::Avx512, "sums of other tiles");
        }
        assert!(self.b.lane_stride == 1 && store.bias.is_none_or(|bias| bias.len() >= cols * across));
        let last = count.saturating_sub(1);
        self.a.assert_holds(last * self.a_next, rows, k);
        self.b.assert_holds(last * self.b_next, cols, k);
    }

    /// Number of columns from a tile to the next.
    pub(super) fn cols_next(&self) -> usize {
        if self.down { 0 } else { self.cols }
    }

    /// Returns the address at which a tile begins in a window of all of them.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 alone"))]
    pub(super) fn place(&self, window: &Window<'_>, tile: usize) -> *mut f32 {
        if self.down { window.place(tile * self.rows, 0) } else { window.place(0, tile * self.cols) }
    }

    /// Operands and place of one tile.
    pub(super) fn tile(&self, at: usize) -> (Strip<'a>, Strip<'a>, Window<'c>) {
        let from =
            |strip: Strip<'a>, skip: usize| Strip { data: strip.data.get(skip..).unwrap_or(&[]), ..strip };
        let (row, col) = if self.down { (at * self.rows, 0) } else { (0, at * self.cols) };
        // SAFETY: one tile at a time, inside of the window of the sweep.
        let c = unsafe { self.c.part(row, col, self.rows, self.cols) };
        (from(self.a, at * self.a_next), from(self.b, at * self.b_next), c)
    }
}
