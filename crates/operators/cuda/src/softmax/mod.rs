//! Logarithms of softmax along the last dimension on a GPU, and their gradient: see `softmax.cu`.
//!
//! A warp takes a row, or a block where rows are long. Sums are kept in double precision and added in the same order in
//! each run.

use crate::block_sums::BLOCK_SUMS;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Longest rows that a warp takes.
const WARP_WIDTH: usize = 1024;

/// Threads of a block.
const THREADS: usize = 256;

/// The logarithm of the softmax of each of a fixed number of contiguous rows, and its gradient.
#[derive(Debug)]
pub struct LogSoftmax {
    plan: Plan,
    forward: Kernel,
    backward: Kernel,
}

/// Shape of the operands.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rows: usize,
    width: usize,
}

impl Plan {
    fn new(rows: usize, width: usize) -> Result<Plan, Error> {
        let plan = Plan { rows, width };
        let blocks = rows.div_ceil(THREADS / plan.lanes());
        // A lane's column is counted in 32 bits, and goes beyond the width by at most a block.
        let most = u32::MAX as usize - THREADS;
        let small = blocks <= i32::MAX as usize && (1..=most).contains(&width);
        if !small || rows.checked_mul(width).is_none() {
            return Err(Error::Unsupported {
                what: format!("softmax of {rows} rows of {width} elements"),
                remedy: "give rows of 1 to 2^32 - 257 elements, at most 2^31 - 1 of them",
            });
        }
        Ok(plan)
    }

    /// Number of threads of a row.
    fn lanes(self) -> usize {
        if self.width <= WARP_WIDTH { 32 } else { THREADS }
    }

    fn grid(self) -> Grid {
        Grid::line(self.rows.div_ceil(THREADS / self.lanes()) as u32, THREADS as u32)
    }

    fn source(self) -> Source {
        Source::new("softmax.cu", [BLOCK_SUMS, include_str!("softmax.cu")].concat())
            .define("ROWS", format!("{}ull", self.rows))
            .define("WIDTH", format!("{}u", self.width))
            .define("THREADS", format!("{THREADS}u"))
            .define("LANES", format!("{}u", self.lanes()))
    }
}

impl LogSoftmax {
    /// Compiles the operator for `rows` rows of `width` floats.
    ///
    /// # Errors
    ///
    /// Rows without elements, or more rows or elements than kernels count; no compiler.
    pub fn new(device: &Device, rows: usize, width: usize) -> Result<LogSoftmax, Error> {
        let plan = Plan::new(rows, width)?;
        let module = device.load(&plan.source())?;
        let [forward, backward] = [module.kernel("log_softmax")?, module.kernel("log_softmax_backward")?];
        Ok(LogSoftmax { plan, forward, backward })
    }

    /// Computes `x - max - ln(sum of e^(x - max))` of each row, `[rows, width]`.
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for; the driver refuses.
    pub fn forward(
        &self,
        stream: &Stream,
        from: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        self.check("the input of a softmax", from.len())?;
        self.check("the output of a softmax", to.len())?;
        let args = Args::new().slice(from).slice_mut(to);
        // SAFETY: the arguments are those of `log_softmax`, and their sizes were checked. All memory is named.
        unsafe { self.forward.launch(stream, self.plan.grid(), args) }
    }

    /// Computes the gradient of the input, `grad - e^output (sum of grad)` row by row, from the gradient of the output
    /// and the output of [`LogSoftmax::forward`], all `[rows, width]`.
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for; the driver refuses.
    pub fn backward(
        &self,
        stream: &Stream,
        grad: Slice<'_, f32>,
        output: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        self.check("the gradient of a softmax", grad.len())?;
        self.check("the output of a softmax", output.len())?;
        self.check("the gradient of a softmax's input", to.len())?;
        let args = Args::new().slice(grad).slice(output).slice_mut(to);
        // SAFETY: the arguments are those of `log_softmax_backward`, and their sizes were checked. All memory is named.
        unsafe { self.backward.launch(stream, self.plan.grid(), args) }
    }

    fn check(&self, what: &'static str, found: usize) -> Result<(), Error> {
        let needed = self.plan.rows * self.plan.width;
        if found == needed { Ok(()) } else { Err(Error::Size { what, found, needed }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn short_rows_have_a_warp_and_long_ones_a_block() {
        let blocks = |rows, width| Plan::new(rows, width).unwrap().grid().blocks[0];
        assert_eq!([blocks(9, 1), blocks(8, 1024), blocks(9, 1025), blocks(0, 3)], [2, 1, 9, 0]);
        let error = Plan::new(3, 0).unwrap_err().to_string();
        assert!(error.contains("3 rows of 0 elements"), "{error}");
        assert!(Plan::new(1 << 40, 2000).is_err() && Plan::new(1, 1 << 32).is_err());
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for width in [1, 10, 1000, 50_000] {
            let source = Plan::new(77, width).unwrap().source();
            compiler.build(&source);
        }
    }
}
