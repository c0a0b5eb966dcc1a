//! The innermost loops: one tile of C held in registers over a whole run of k, for each instruction set.
//!
//! All `unsafe` code of the products is in this folder. Callers have one obligation: windows from [`Window::part`] that
//! are in use at the same time must not overlap. All other conditions are checked here, once a tile.

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod copy;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod sweep;
mod transpose;
mod widen;
mod window;

pub(crate) use ahead::{PrefetchRegions, Region};
pub(crate) use copy::{Across, copy_lanes};
pub(crate) use sweep::Sweep;
pub(crate) use transpose::transpose;
pub(crate) use widen::{Loop, multiply_add, widen};
pub(crate) use window::Window;

use crate::Isa;
use crate::arch::Arch;

/// Number of steps up to which storing a tile is a large part of the work. Such tiles are computed across, so that C is
/// written in the order of memory.
pub(crate) const FEW_STEPS: usize = 64;

/// Number of terms of a sum up to which copying A costs more than reading it in place.
pub(crate) const SHORT: usize = 32;

/// Number of rows of the default register tile.
pub(crate) const fn tile_rows(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 14,
        Isa::Neon => 9,
        Isa::Scalar | Isa::Avx2 => 6,
    }
}

/// Number of columns of the default register tile: two vectors, or three of NEON's short ones.
pub(crate) const fn tile_cols(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 32,
        Isa::Avx2 => 16,
        Isa::Neon => 12,
        Isa::Scalar => 8,
    }
}

/// Largest number of rows of a register tile with `cols` columns: as many as the registers hold, 0 where it is too
/// wide.
pub(crate) fn most_rows(isa: Isa, cols: usize) -> usize {
    match (isa, cols) {
        (Isa::Avx512, ..=16) => 28,
        (Isa::Avx512, 33..=64) => 6,
        _ if cols <= tile_cols(isa) => tile_rows(isa),
        _ => 0,
    }
}

/// The register tile for a product `[m, k] x [k, n]`: largest number of rows, and number of columns.
pub(crate) fn best_tile(isa: Isa, m: usize, n: usize, k: usize) -> (usize, usize) {
    let usual = tile_cols(isa);
    let cols = match isa {
        // Writing C takes longest: long runs of few rows.
        Isa::Avx512 if k <= SHORT && n > usual => 64,
        // All rows are in one tile, so that B is read once.
        Isa::Avx512 if m > tile_rows(isa) && m <= most_rows(isa, 16) => 16,
        _ => usual,
    };
    (most_rows(isa, cols), cols)
}

/// One operand of a tile: element (lane, step) is at `lane * lane_stride + step * step_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Strip<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) lane_stride: usize,
    pub(crate) step_stride: usize,
}

impl Strip<'_> {
    /// Asserts that it holds that many lanes and steps from `skip` on.
    fn assert_holds(&self, skip: usize, lanes: usize, steps: usize) {
        if lanes > 0 && steps > 0 {
            let last = skip + (lanes - 1) * self.lane_stride + (steps - 1) * self.step_stride;
            assert!(last < self.data.len(), "a strip shorter than its tile");
        }
    }
}

/// Storing of a finished sum: `c = activation(alpha * sum + beta * c + bias)`.
#[derive(Clone, Copy)]
pub(crate) struct Store<'a> {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// One element for each column of the tile.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) relu: bool,
}

impl Store<'_> {
    fn value(&self, sum: f32, old: impl FnOnce() -> f32, col: usize) -> f32 {
        let mut value = self.alpha * sum;
        if self.beta != 0.0 {
            value += self.beta * old();
        }
        if let Some(bias) = self.bias {
            value += bias[col];
        }
        if self.relu && value < 0.0 { 0.0 } else { value }
    }
}

/// Computes one tile: the `rows x cols` corner of C over `k` steps. `a` has a lane for each row; `b` has a lane for
/// each column, next to each other.
///
/// # Panics
///
/// The tile is larger than the registers, a strip is too short for it, or it leaves the window.
#[expect(clippy::too_many_arguments, reason = "a product has as many")]
pub(crate) fn tile(
    arch: Arch,
    k: usize,
    a: Strip,
    b: Strip,
    c: &Window,
    rows: usize,
    cols: usize,
    store: &Store,
) {
    let isa = arch.isa();
    assert!(rows >= 1 && cols >= 1 && rows <= most_rows(isa, cols), "tile size");
    assert!(rows <= c.rows() && cols <= c.cols(), "a tile outside of its window");
    assert!(b.lane_stride == 1 && store.bias.is_none_or(|bias| bias.len() >= cols));
    a.assert_holds(0, rows, k);
    b.assert_holds(0, cols, k);
    match arch {
        Arch::Scalar => scalar::tile(k, a, b, c, rows, cols, store),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C; sizes were checked above.
        Arch::Avx2(token) => unsafe { avx2::tile(token, k, a, b, c, rows, cols, store) },
        #[cfg(target_arch = "x86_64")]
        Arch::Avx512(_) => {
            let tiles =
                Sweep { k, count: 1, rows, cols, down: true, a, a_next: 0, b, b_next: 0, c: *c, sums: None };
            sweep(arch, &tiles, store, &mut PrefetchRegions::new(Region::NONE, Region::NONE));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves that the processor has NEON; sizes were checked above.
        Arch::Neon(token) => unsafe { neon::tile(token, k, a, b, c, rows, cols, store) },
        // Tokens of another kind of processor do not exist.
        _ => scalar::tile(k, a, b, c, rows, cols, store),
    }
}

/// Computes all tiles of a sweep, and prefetches `ahead` meanwhile. AVX-512 does them in one call.
///
/// # Panics
///
/// A tile is larger than the registers, a strip is too short, or a tile leaves the window.
pub(crate) fn sweep(arch: Arch, tiles: &Sweep<'_, '_>, store: &Store, ahead: &mut PrefetchRegions) {
    if tiles.count == 0 {
        return;
    }
    tiles.check(arch, store);
    #[cfg(target_arch = "x86_64")]
    if let Arch::Avx512(token) = arch {
        // SAFETY: the token proves that the processor has AVX-512; sizes were checked above.
        return unsafe { avx512::sweep(token, tiles, store, ahead) };
    }
    let _ = ahead;
    for at in 0..tiles.count {
        let (a, b, c) = tiles.tile(at);
        let bias = store.bias.map(|bias| &bias[at * tiles.cols_next()..]);
        tile(arch, tiles.k, a, b, &c, tiles.rows, tiles.cols, &Store { bias, ..*store });
    }
}
