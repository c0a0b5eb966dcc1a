//! Sizes of the matrices and of the pairs.

use steptime_tensor::Layout;

use crate::{Error, Grid, Source};

/// Threads of a block.
const THREADS: usize = 256;

/// Matrices and the number of pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// `[batch, rows, columns]`.
    pub(super) matrices: Layout,
    pub(super) pairs: usize,
}

impl Plan {
    pub(super) fn new(matrices: Layout, pairs: usize) -> Result<Plan, Error> {
        let plan = Plan { matrices, pairs };
        let count = plan.batch().checked_mul(pairs);
        let blocks = count.map(|count| count.div_ceil(THREADS));
        if pairs >= u32::MAX as usize || blocks.is_none_or(|blocks| blocks > i32::MAX as usize) {
            return Err(Error::Unsupported {
                what: format!("{pairs} pairs of each of {} matrices", plan.batch()),
                remedy: "give fewer than 2^32 pairs, and cut the batch into parts of fewer than 2^39 elements",
            });
        }
        Ok(plan)
    }

    pub(super) fn batch(&self) -> usize {
        self.matrices.shape()[0]
    }

    /// Number of elements of all samples.
    pub(super) fn count(&self) -> usize {
        self.batch() * self.pairs
    }

    /// Number of elements that the matrices' buffer must have.
    pub(super) fn needed(&self) -> usize {
        self.matrices.last().map_or(0, |last| last + 1)
    }

    /// A thread for each element.
    pub(super) fn grid(&self) -> Grid {
        Grid::line(self.count().div_ceil(THREADS) as u32, THREADS as u32)
    }

    /// A thread for each pair.
    pub(super) fn pair_grid(&self) -> Grid {
        Grid::line(self.pairs.div_ceil(THREADS) as u32, THREADS as u32)
    }

    pub(super) fn source(&self) -> Source {
        let [shape, strides] = [self.matrices.shape(), self.matrices.strides()];
        // Threads of the last block count past the end.
        let wide = self.count() + THREADS > u32::MAX as usize;
        Source::new("index.cu", include_str!("index.cu"))
            .define("THREADS", THREADS)
            .define("BATCH", format!("{}ull", shape[0]))
            .define("PAIRS", format!("{}u", self.pairs))
            .define("ROWS", format!("{}ull", shape[1]))
            .define("COLUMNS", format!("{}ull", shape[2]))
            .define("SAMPLE", format!("{}ull", strides[0]))
            .define("DOWN", format!("{}ull", strides[1]))
            .define("RIGHT", format!("{}ull", strides[2]))
            .define("OFFSET", format!("{}ull", self.matrices.offset()))
            .define("COUNT", if wide { "u64" } else { "u32" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    fn plan(shape: [usize; 3], pairs: usize) -> Result<Plan, Error> {
        Plan::new(Layout::contiguous(&shape).unwrap(), pairs)
    }

    #[test]
    fn sizes_that_threads_do_not_count_are_refused() {
        assert_eq!(plan([100, 27, 27], 351).unwrap().grid(), Grid::line(138, 256));
        assert!(plan([1, 27, 27], 1 << 32).unwrap_err().to_string().contains("2^32 pairs"));
        assert!(plan([1 << 20, 1, 1], 1 << 20).is_err());
    }

    #[test]
    fn kernels_compile_for_every_size() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (shape, pairs) in [([100, 27, 27], 351), ([1 << 22, 70, 70], 2415), ([3, 1, 1], 1)] {
            let source = plan(shape, pairs).unwrap().source();
            compiler.build(&source);
        }
    }
}
