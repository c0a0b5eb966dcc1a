//! The mean cross entropy of scores and classes, and its gradient, in one pass over the scores each: see `cross_entropy.cu`.

use std::marker::PhantomData;

use super::NllLoss;
use crate::block_sums::BLOCK_SUMS;
use crate::float::FLOATS;
use crate::{Args, Buffer, Device, Error, Float, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Longest rows that a warp takes.
const WARP_WIDTH: usize = 1024;

/// Threads of a block.
const THREADS: usize = 256;

/// Largest number of scores of a thread that it holds in registers.
const HELD: usize = 64;

/// Bytes of a vector.
const BYTES: usize = 16;

/// The mean of `-ln(e^x[c] / sum of e^x)` over rows of scores `x = scores / divisor` with classes `c`, for a batch of fixed shape, and its gradient.
///
/// Numbers are those of a division, [`LogSoftmax`](crate::softmax::LogSoftmax) and [`NllLoss`] one after the other; the sums of
/// rows may be added in another order. Scores and gradients are of 32 or 16 bits, and arithmetic of 32 bits.
#[derive(Debug)]
pub struct CrossEntropy<T> {
    plan: Plan,
    scan: Kernel,
    set: Kernel,
    /// The logarithm of the probability of each sample's class.
    picked: Buffer<f32>,
    mean: NllLoss,
    of: PhantomData<fn(T) -> T>,
}

/// Shape of the scores, and their divisor.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    rows: usize,
    width: usize,
    divisor: f32,
    /// Bytes of a score.
    size: usize,
}

impl Plan {
    fn new(rows: usize, width: usize, divisor: f32, size: usize) -> Result<Plan, Error> {
        let plan = Plan { rows, width, divisor, size };
        let blocks = rows.div_ceil(THREADS / plan.lanes());
        // A lane's vector is counted in 32 bits, and goes beyond the row by at most a block.
        let most = u32::MAX as usize - THREADS;
        let small = blocks <= i32::MAX as usize && (1..=most).contains(&width);
        if !small || rows.checked_mul(width).is_none() {
            return Err(Error::Unsupported {
                what: format!("cross entropy of {rows} rows of {width} scores"),
                remedy: "give rows of 1 to 2^32 - 257 scores, at most 2^31 - 1 of them",
            });
        }
        // Its reciprocal and products with it are ordinary numbers.
        if !(1e-18..=1e18).contains(&divisor.abs()) {
            return Err(Error::Unsupported {
                what: format!("cross entropy of scores that are divided by {divisor}"),
                remedy: "give a divisor between 1e-18 and 1e18",
            });
        }
        Ok(plan)
    }

    /// Number of threads of a row.
    fn lanes(self) -> usize {
        if self.width <= WARP_WIDTH { 32 } else { THREADS }
    }

    /// Scores of a vector.
    fn vector(self) -> usize {
        let most = BYTES / self.size;
        if self.width.is_multiple_of(most) { most } else { 1 }
    }

    /// Number of vectors of a thread that it holds in registers; 0 where there are too many.
    fn turns(self) -> usize {
        let turns = self.width.div_ceil(self.vector() * self.lanes());
        if turns * self.vector() <= HELD { turns } else { 0 }
    }

    fn grid(self) -> Grid {
        Grid::line(self.rows.div_ceil(THREADS / self.lanes()) as u32, THREADS as u32)
    }

    fn source(self, element: &str) -> Source {
        let float = |value: f32| format!("__uint_as_float({}u)", value.to_bits());
        Source::new("cross_entropy.cu", [BLOCK_SUMS, FLOATS, include_str!("cross_entropy.cu")].concat())
            .define("ELEMENT", element)
            .define("ROWS", format!("{}ull", self.rows))
            .define("WIDTH", format!("{}u", self.width))
            .define("VECTOR", format!("{}u", self.vector()))
            .define("LANES", format!("{}u", self.lanes()))
            .define("THREADS", format!("{THREADS}u"))
            .define("TURNS", format!("{}u", self.turns()))
            .define("DIVISOR", float(self.divisor))
            .define("RECIPROCAL", float(1.0 / self.divisor))
            .define("DIVIDES", u8::from(self.divisor.to_bits() != 1.0_f32.to_bits()))
    }
}

impl<T: Float> CrossEntropy<T> {
    /// Compiles the loss of `rows` samples of `width` classes, whose scores are divided by `divisor`.
    ///
    /// # Errors
    ///
    /// Rows without scores, or more rows or scores than kernels count; a divisor below 1e-18 or above 1e18; no compiler; not
    /// enough memory.
    pub fn new(device: &Device, rows: usize, width: usize, divisor: f32) -> Result<CrossEntropy<T>, Error> {
        let plan = Plan::new(rows, width, divisor, size_of::<T>())?;
        let module = device.load(&plan.source(T::DEVICE_NAME))?;
        Ok(CrossEntropy {
            plan,
            scan: module.kernel("scan_rows")?,
            set: module.kernel("set_gradients")?,
            picked: Buffer::uninit(device, rows)?,
            mean: NllLoss::of_picked(device, rows, width)?,
            of: PhantomData,
        })
    }

    /// Computes the mean loss as the first element of `loss`, the number of samples as that of `total`, and the logarithm of
    /// the sum of `e^x` of each row as `sums`, from scores `[rows, width]` and a class for each row. A class out of range adds
    /// nothing, and is reported by [`CrossEntropy::check`].
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for, scores that begin between vectors of 16 bytes; the driver refuses.
    pub fn forward(
        &mut self,
        stream: &Stream,
        scores: Slice<'_, T>,
        classes: Slice<'_, i64>,
        sums: &mut SliceMut<'_, f64>,
        [loss, total]: [&mut SliceMut<'_, f32>; 2],
    ) -> Result<(), Error> {
        self.check_scores("scores of classes", scores.len(), scores.address())?;
        same("classes of samples", classes.len(), self.plan.rows)?;
        same("sums of rows", sums.len(), self.plan.rows)?;
        let args = Args::new().slice(scores).slice(classes).slice_mut(sums).own(self.picked.as_ref());
        // SAFETY: the arguments are those of `scan_rows`, and their sizes and alignment were checked; it stays within them
        // whatever the classes are. All memory is named.
        unsafe { self.scan.launch(stream, self.plan.grid(), args)? };
        self.mean.forward(stream, self.picked.as_ref(), classes, loss, total)
    }

    /// Computes the gradient of the scores, `[rows, width]`, from the gradient of the loss, the scores, the classes, and the
    /// number of samples and the sums of [`CrossEntropy::forward`]. It is zero for a sample whose class is out of range.
    ///
    /// # Errors
    ///
    /// As [`CrossEntropy::forward`].
    pub fn backward(
        &self,
        stream: &Stream,
        [grad, total]: [Slice<'_, f32>; 2],
        scores: Slice<'_, T>,
        classes: Slice<'_, i64>,
        sums: Slice<'_, f64>,
        to: &mut SliceMut<'_, T>,
    ) -> Result<(), Error> {
        self.check_scores("scores of classes", scores.len(), scores.address())?;
        self.check_scores("gradients of scores", to.len(), to.address())?;
        same("classes of samples", classes.len(), self.plan.rows)?;
        same("sums of rows", sums.len(), self.plan.rows)?;
        for (what, found) in
            [("the gradient of a mean loss", grad.len()), ("the number of samples", total.len())]
        {
            if found == 0 {
                return Err(Error::Size { what, found, needed: 1 });
            }
        }
        let args = Args::new().slice(scores).slice(grad).slice(classes).slice(total);
        let args = args.slice(sums).slice_mut(to);
        // SAFETY: the arguments are those of `set_gradients`, and their sizes and alignment were checked; it stays within them
        // whatever the classes are. All memory is named.
        unsafe { self.set.launch(stream, self.plan.grid(), args) }
    }

    /// Waits for the stream, and reports the first class out of range that [`CrossEntropy::forward`] found since the last
    /// time.
    ///
    /// # Errors
    ///
    /// A class out of range, with its sample; a kernel that failed.
    pub fn check(&mut self, stream: &Stream) -> Result<(), Error> {
        self.mean.check(stream)
    }

    fn check_scores(&self, what: &'static str, found: usize, address: u64) -> Result<(), Error> {
        same(what, found, self.plan.rows * self.plan.width)?;
        let align = (self.plan.vector() * self.plan.size) as u64;
        if address.is_multiple_of(align) {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: format!("{what} at {address:#x}, read by vectors of {align} bytes"),
            remedy: "give memory that begins at a multiple of 16 bytes",
        })
    }
}

fn same(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found == needed { Ok(()) } else { Err(Error::Size { what, found, needed }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn rows_are_held_in_registers_up_to_a_length() {
        let plan = |width, size| Plan::new(100, width, 0.1, size).unwrap();
        let found = [(8192, 4), (8192, 2), (16_384, 4), (16_385, 4), (10, 4), (1000, 4), (1, 2)].map(
            |(width, size)| {
                (plan(width, size).lanes(), plan(width, size).vector(), plan(width, size).turns())
            },
        );
        let expected =
            [(256, 4, 8), (256, 8, 4), (256, 4, 16), (256, 1, 0), (32, 1, 1), (32, 4, 8), (32, 1, 1)];
        assert_eq!(found, expected);
    }

    #[test]
    fn shapes_and_divisors_that_cannot_be_are_refused() {
        for (rows, width, divisor) in
            [(3, 0, 1.0), (1 << 40, 2000, 1.0), (3, 4, 0.0), (3, 4, f32::NAN), (3, 4, 1e30)]
        {
            assert!(Plan::new(rows, width, divisor, 4).is_err(), "{rows} {width} {divisor}");
        }
        assert!(Plan::new(3, 4, -0.05, 4).is_ok());
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (width, divisor) in [(1, 1.0), (10, 0.05), (1000, 0.05), (8192, 0.05), (8192, 1.0), (50_257, 2.0)]
        {
            for (name, size) in [("float", 4), ("Bf16", 2)] {
                compiler.build(&Plan::new(77, width, divisor, size).unwrap().source(name));
            }
        }
    }
}
