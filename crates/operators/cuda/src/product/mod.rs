//! Our own matrix products, `C = A B^T`, as a ladder of rungs: see `product.cuh` and the kernels in the same folder.
//!
//! A is `[M, K]` and B `[N, K]`, the layout of a linear layer's input and weights. [`crate::gemm`] wraps cuBLASLt,
//! which supports more. These kernels are readable examples, and the best rung is within a tenth of cuBLASLt on Hopper
//! GPUs.
//! GPUs.

mod maps;
mod number;

use std::fmt;
use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use self::maps::map;
pub use self::number::Number;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Bytes of a tile's row that are multiplied in a step.
const ROW: usize = 128;

/// Number of rows of a tile, and of columns except for the last rung.
const SIDE: usize = 128;

/// Number of rows of tiles that are processed together.
const BAND: usize = 16;

/// Alignment in bytes of every matrix and, except for the first two rungs, of the length of its rows.
const ALIGN: usize = 16;

/// A step of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rung {
    /// One thread per element, no shared memory.
    Threads,
    /// Tiles in shared memory, 8 x 8 sums per thread, on the ordinary units.
    Tiles,
    /// `mma`, the matrix instruction of a warp, on tiles that are copied ahead.
    Mma,
    /// `wgmma`, the matrix instruction of four warps, on tiles from the copy engine: Hopper only.
    Wgmma,
}

impl Rung {
    /// All rungs, from the first to the last.
    pub const ALL: [Rung; 4] = [Rung::Threads, Rung::Tiles, Rung::Mma, Rung::Wgmma];

    /// Whether it multiplies 32-bit floats as TF32, with fractions cut to 10 bits.
    #[must_use]
    pub fn cuts(self) -> bool {
        matches!(self, Rung::Mma | Rung::Wgmma)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Threads => "threads",
            Rung::Tiles => "tiles",
            Rung::Mma => "mma",
            Rung::Wgmma => "wgmma",
        })
    }
}

/// Kernel argument for the sizes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Sizes {
    m: u32,
    n: u32,
    k: u32,
    pitch: u32,
}

/// A product of one shape by one rung: bit-identical in each run.
#[derive(Debug)]
pub struct Product<T> {
    rung: Rung,
    sizes: Sizes,
    /// Number of columns of a tile.
    wide: usize,
    multiprocessors: u32,
    grid: Grid,
    kernel: Kernel,
    of: PhantomData<T>,
}

/// Number of columns of a tile of the last rung: the most that still give three quarters of the GPU a tile.
fn width(m: usize, n: usize, multiprocessors: u32) -> usize {
    let busy = |wide: usize| 4 * m.div_ceil(SIDE) * n.div_ceil(wide) >= 3 * multiprocessors as usize;
    [256, 128].into_iter().find(|&wide| busy(wide)).unwrap_or(64)
}

/// Number of pipeline stages for tiles of this width: as many as shared memory holds.
fn stages(wide: usize) -> usize {
    match wide {
        256 => 4,
        128 => 6,
        _ => 8,
    }
}

impl<T: Number> Product<T> {
    /// Compiles the product.
    ///
    /// # Errors
    ///
    /// A shape that the rung does not support, a GPU without its instruction, no compiler.
    pub fn new(device: &Device, [m, n, k]: [usize; 3], rung: Rung) -> Result<Product<T>, Error> {
        let most = u32::MAX as usize / 256;
        if m.min(n).min(k) == 0
            || m.max(n).max(k) > most
            || (rung.cuts() && !(k * size_of::<T>()).is_multiple_of(ALIGN))
        {
            return Err(Error::Unsupported {
                what: format!("a product of {m} x {k} and {n} x {k} by {rung}"),
                remedy: "give rows of at least one number, and for matrix units of a multiple of 16 bytes",
            });
        }
        let capability = device.capability();
        let needed = match rung {
            Rung::Threads | Rung::Tiles => 0,
            Rung::Mma => 8,
            Rung::Wgmma => 9,
        };
        if capability.major < needed || (rung == Rung::Wgmma && capability.major != needed) {
            return Err(Error::Unsupported {
                what: format!("{rung} on a GPU of capability {capability}"),
                remedy: "take an earlier rung",
            });
        }
        let multiprocessors = device.multiprocessors();
        let wide = if rung == Rung::Wgmma { width(m, n, multiprocessors) } else { SIDE };
        let module = device.load(&source::<T>(rung, wide))?;
        let tiles = (m.div_ceil(SIDE) * n.div_ceil(wide)) as u32;
        let (name, grid) = match rung {
            Rung::Threads => {
                ("product_threads", Grid::plane(n.div_ceil(16) as u32, m.div_ceil(16) as u32, 256))
            }
            Rung::Tiles => ("product_tiles", Grid::line(tiles, 256)),
            Rung::Mma => ("product", Grid::line(tiles, 256).shared((3 * 2 * SIDE * ROW) as u32)),
            Rung::Wgmma => {
                // Tiles begin at a multiple of 1024; each stage has two barriers.
                let stages = stages(wide);
                let shared = 1024 + stages * ((SIDE + wide) * ROW + 16);
                ("product", Grid::line(tiles.min(multiprocessors), 384).shared(shared as u32))
            }
        };
        let kernel = module.kernel(name)?;
        if grid.shared > 0 {
            kernel.allow_shared(grid.shared)?;
        }
        let sizes = Sizes { m: m as u32, n: n as u32, k: k as u32, pitch: n as u32 };
        Ok(Product { rung, sizes, wide, multiprocessors, grid, kernel, of: PhantomData })
    }

    /// Computes `c = a b^T`. Neither waits, within one stream, nor allocates, so that it can be captured.
    ///
    /// # Errors
    ///
    /// Matrices that are too short or not aligned; the driver refuses.
    pub fn run(
        &self,
        stream: &Stream,
        a: Slice<'_, T>,
        b: Slice<'_, T>,
        c: &mut SliceMut<'_, T>,
    ) -> Result<(), Error> {
        let [m, n, k] = [self.sizes.m, self.sizes.n, self.sizes.k].map(|size| size as usize);
        for (what, slice, needed) in [("A", a, m * k), ("B", b, n * k), ("C", c.as_ref(), m * n)] {
            if slice.len() < needed {
                return Err(Error::Size { what, found: slice.len(), needed });
            }
            if !slice.address().is_multiple_of(ALIGN as u64) {
                return Err(Error::Unsupported {
                    what: format!("{what} at an address that is not a multiple of {ALIGN}"),
                    remedy: "begin matrices at a multiple of 16 bytes",
                });
            }
        }
        let args = if self.rung == Rung::Wgmma {
            let (left, right) = (map(a, [m, k], SIDE)?, map(b, [n, k], self.wide)?);
            let tiles = (m.div_ceil(SIDE) * n.div_ceil(self.wide)) as u32;
            Args::new().value(left).value(right).reads(a).reads(b).slice_mut(c).value(self.sizes).value(tiles)
        } else {
            Args::new().slice(a).slice(b).slice_mut(c).value(self.sizes)
        };
        // SAFETY: the arguments are those of the rung's kernel, and the matrices, which are named, have the lengths
        // that it expects.
        unsafe { self.kernel.launch(stream, self.grid, args) }
    }

    /// Columns of a tile, and number of blocks that run at once.
    #[must_use]
    pub fn tile(&self) -> (usize, u32) {
        (self.wide, self.multiprocessors.min(self.grid.blocks[0]))
    }
}

/// The source of a rung.
fn source<T: Number>(rung: Rung, wide: usize) -> Source {
    let (name, text) = match rung {
        Rung::Threads | Rung::Tiles => ("tiles.cu", include_str!("tiles.cu")),
        Rung::Mma => ("mma.cu", include_str!("mma.cu")),
        Rung::Wgmma => ("wgmma.cu", include_str!("wgmma.cu")),
    };
    let source = Source::new(name, [include_str!("product.cuh"), text].concat()).define("TYPE", T::TYPE);
    if rung != Rung::Wgmma {
        return source;
    }
    source.own_features().define("WIDE", wide).define("STAGES", stages(wide)).define("BAND", BAND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;
    use half::bf16;

    #[test]
    fn tiles_are_as_wide_as_leaves_the_gpu_busy() {
        assert_eq!([1024, 2048, 4096, 8192].map(|side| width(side, side, 132)), [64, 256, 256, 256]);
        assert_eq!(width(1, 1, 132), 64);
        for wide in [64, 128, 256] {
            assert!(1024 + stages(wide) * ((SIDE + wide) * ROW + 16) <= 227 << 10);
        }
    }

    #[test]
    fn every_rung_compiles_for_both_types() {
        let Some(compiler) = TestCompiler::new() else { return };
        for rung in Rung::ALL {
            for wide in if rung == Rung::Wgmma { vec![64, 128, 256] } else { vec![SIDE] } {
                for source in [source::<f32>(rung, wide), source::<bf16>(rung, wide)] {
                    let own = compiler.build(&source).options[0].ends_with("sm_90a");
                    assert_eq!(own, rung == Rung::Wgmma, "{rung}");
                }
            }
        }
    }
}
