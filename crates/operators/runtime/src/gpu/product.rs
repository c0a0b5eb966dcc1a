//! Products of matrices on a GPU, by the layouts of their operands.

use steptime_cuda::gemm::{Blas, Epilogue, Gemm, Math, Shape};
use steptime_cuda::{Error, Slice, SliceMut, Stream};

use super::operand::RowsOf;
use crate::arg::Arg;

/// A product `to = left right`, or one for each index of a first dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuProduct {
    left: RowsOf,
    right: RowsOf,
    to: RowsOf,
    /// Number of products, and elements from one to the next of each matrix.
    batch: (usize, [usize; 3]),
}

impl GpuProduct {
    /// A product of these operands.
    ///
    /// # Errors
    /// Where neither the rows nor the columns of a matrix are neighbours in memory, or the result is stored by columns.
    pub(crate) fn new(left: &Arg, right: &Arg, to: &Arg) -> Result<GpuProduct, String> {
        let rows = |arg: &Arg| {
            RowsOf::new(arg).ok_or_else(|| {
                let (shape, strides) = (arg.shape(), arg.layout.strides());
                format!(
                    "a matrix of shape {shape:?} with strides {strides:?} has no neighbouring rows or columns"
                )
            })
        };
        let apart = |arg: &Arg| match arg.layout.strides() {
            &[stride, _, _] => stride,
            _ => 0,
        };
        let count = if to.shape().len() == 3 { to.shape()[0] } else { 1 };
        let batch = (count, [apart(left), apart(right), apart(to)]);
        let product = GpuProduct { left: rows(left)?, right: rows(right)?, to: rows(to)?, batch };
        if product.to.transposed {
            return Err("its result is stored by columns".to_owned());
        }
        Ok(product)
    }

    fn shape(&self) -> Shape {
        let GpuProduct { left, right, to, batch: (count, apart) } = self;
        let sizes = [to.rows, to.columns, left.columns];
        let aligned = [left, right, to].iter().all(|matrix| matrix.start.is_multiple_of(4));
        Shape::new(sizes, left.transposed, right.transposed)
            .with_strides([left.stride, right.stride, to.stride])
            .with_batch(*count, *apart)
            .with_alignment(if aligned { 16 } else { 4 })
    }

    /// Chooses an algorithm.
    pub(crate) fn compile(&self, blas: &Blas, math: Math, epilogue: Epilogue) -> Result<Gemm<f32>, Error> {
        Gemm::new(blas, self.shape(), math, epilogue)
    }

    /// Multiplies the matrices in the memory of their operands.
    pub(crate) fn run(
        &self,
        gemm: &mut Gemm<f32>,
        stream: &Stream,
        left: Slice<'_, f32>,
        right: Slice<'_, f32>,
        to: SliceMut<'_, f32>,
        bias: Option<Slice<'_, f32>>,
    ) -> Result<(), Error> {
        let (_, mut to) = to.split_at(self.to.start);
        let (left, right) = (from(left, self.left), from(right, self.right));
        gemm.run(stream, (1.0, 0.0), left, right, &mut to, bias)
    }
}

/// The memory from a matrix's first element on.
fn from(memory: Slice<'_, f32>, matrix: RowsOf) -> Slice<'_, f32> {
    memory.slice(matrix.start..memory.len())
}
