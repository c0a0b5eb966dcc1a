//! The innermost loops: one tile of C held in registers over a whole run of k, for each instruction set.
//!
//! All `unsafe` of the products is in this folder. What its callers owe is small: [`Window::part`] may be given
//! out only once for each place at a time. All other conditions are checked here, once a tile.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod copy;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod transpose;
mod widen;
mod window;

pub(crate) use copy::{Across, copy_lanes};
pub(crate) use transpose::transpose;
pub(crate) use widen::{Loop, multiply_add, widen};
pub(crate) use window::Window;

use crate::Isa;
use crate::arch::Arch;

/// Steps up to which storing a tile is a good part of the work. Such tiles are done side by side, so that C is written in
/// the order of memory, and do not ask for it ahead.
pub(crate) const FEW_STEPS: usize = 64;

/// Rows of a register tile.
pub(crate) const fn tile_rows(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 14,
        Isa::Neon => 9,
        Isa::Scalar | Isa::Avx2 => 6,
    }
}

/// Columns of a register tile: two vectors, or three of NEON's short ones.
pub(crate) const fn tile_cols(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 32,
        Isa::Avx2 => 16,
        Isa::Neon => 12,
        Isa::Scalar => 8,
    }
}

/// One operand of a tile: element (lane, step) is at `lane * lane_stride + step * step_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Strip<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) lane_stride: usize,
    pub(crate) step_stride: usize,
}

impl Strip<'_> {
    fn assert_holds(&self, lanes: usize, steps: usize) {
        if lanes > 0 && steps > 0 {
            let last = (lanes - 1) * self.lane_stride + (steps - 1) * self.step_stride;
            assert!(last < self.data.len(), "a strip shorter than its tile");
        }
    }
}

/// What a tile asks for while it adds: two lines at a time, as many times as it has steps.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "asked for by AVX-512 alone"))]
pub(crate) struct Ahead {
    /// Where it begins; asked for only, so that it may be anywhere.
    pub(crate) start: *const f32,
    /// Floats from one time to the next.
    pub(crate) step: usize,
}

/// How a finished sum is stored: `c = activation(alpha * sum + beta * c + bias)`.
#[derive(Clone, Copy)]
pub(crate) struct Store<'a> {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// One for each column of the tile.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) relu: bool,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "asked for by AVX-512 alone"))]
    pub(crate) ahead: Option<Ahead>,
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
    assert!((1..=tile_rows(isa)).contains(&rows) && (1..=tile_cols(isa)).contains(&cols), "tile size");
    assert!(rows <= c.rows() && cols <= c.cols(), "a tile outside of its window");
    assert!(b.lane_stride == 1 && store.bias.is_none_or(|bias| bias.len() >= cols));
    a.assert_holds(rows, k);
    b.assert_holds(cols, k);
    match arch {
        Arch::Scalar => scalar::tile(k, a, b, c, rows, cols, store),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX2, FMA and F16C; sizes were checked above.
        Arch::Avx2(token) => unsafe { avx2::tile(token, k, a, b, c, rows, cols, store) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the token proves that the processor has AVX-512; sizes were checked above.
        Arch::Avx512(token) => unsafe { avx512::tile(token, k, a, b, c, rows, cols, store) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the token proves that the processor has NEON; sizes were checked above.
        Arch::Neon(token) => unsafe { neon::tile(token, k, a, b, c, rows, cols, store) },
        // Nobody has a token of another kind of processor.
        _ => scalar::tile(k, a, b, c, rows, cols, store),
    }
}
