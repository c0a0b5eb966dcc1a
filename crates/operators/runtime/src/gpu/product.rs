//! Products of matrices on a GPU, by the layouts of their operands.

use steptime_cuda::gemm::{Blas, Epilogue, Gemm, Math, Shape};
use steptime_cuda::rearrange::Copy;
use steptime_cuda::{Buffer, Error, Slice, SliceMut, Stream};
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

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

    /// Chooses an algorithm, and allocates the copy of a small right matrix that is stored by rows: the units of a GPU multiply 32-bit floats
    /// faster where both matrices store the summed dimension's elements as neighbours.
    ///
    /// # Errors
    /// Where there is no algorithm, or not enough memory.
    pub(crate) fn compile(
        &self,
        blas: &Blas,
        stream: &Stream,
        math: Math,
        epilogue: Epilogue,
    ) -> Result<GpuGemm, Error> {
        let GpuProduct { left, right, to, batch: (count, apart) } = *self;
        let is_small = count == 1 && LARGER * right.rows * right.columns <= left.rows * left.columns;
        let turned =
            (is_small && !right.transposed && math == Math::Tf32).then(|| Turned::new(stream, right));
        let turned = turned.transpose()?;
        let used = turned.as_ref().map_or(right, |turned| turned.rows);
        let aligned = [left, used, to].iter().all(|matrix| matrix.start.is_multiple_of(4));
        let shape = Shape::new([to.rows, to.columns, left.columns], left.transposed, used.transposed)
            .with_strides([left.stride, used.stride, to.stride])
            .with_batch(count, apart)
            .with_alignment(if aligned { 16 } else { 4 });
        Ok(GpuGemm { gemm: Gemm::new(blas, shape, math, epilogue)?, turned })
    }

    /// Multiplies the matrices in the memory of their operands.
    pub(crate) fn run(
        &self,
        work: &mut GpuGemm,
        stream: &Stream,
        left: Slice<'_, f32>,
        right: Slice<'_, f32>,
        to: SliceMut<'_, f32>,
        bias: Option<Slice<'_, f32>>,
    ) -> Result<(), Error> {
        let (_, mut to) = to.split_at(self.to.start);
        let right = match &mut work.turned {
            None => from(right, self.right),
            Some(turned) => {
                turned.copy.run(stream, right.cast(), &mut turned.buffer.as_mut().cast())?;
                turned.buffer.as_ref()
            }
        };
        work.gemm.run(stream, (1.0, 0.0), from(left, self.left), right, &mut to, bias)
    }
}

/// A product with the copy of its right matrix.
#[derive(Debug)]
pub(crate) struct GpuGemm {
    gemm: Gemm<f32>,
    turned: Option<Turned>,
}

/// A copy of a matrix by columns.
#[derive(Debug)]
struct Turned {
    buffer: Buffer<f32>,
    rows: RowsOf,
    copy: Copy<u32>,
}

/// Least number of elements of the left matrix for each of the right one, for a copy of the right one to be worth its time.
const LARGER: usize = 8;

impl Turned {
    fn new(stream: &Stream, matrix: RowsOf) -> Result<Turned, Error> {
        let RowsOf { start, rows, columns, stride, .. } = matrix;
        let own = Layout::new(&[columns, rows], &[1, stride], start).map_err(RearrangeError::from)?;
        let turned = Layout::contiguous(&[columns, rows]).map_err(RearrangeError::from)?;
        Ok(Turned {
            buffer: Buffer::zeros(stream, rows * columns)?,
            rows: RowsOf { start: 0, rows, columns, stride: rows, transposed: true },
            copy: Copy::new(stream.device(), &own, &turned)?,
        })
    }
}

/// The memory from a matrix's first element on.
fn from(memory: Slice<'_, f32>, matrix: RowsOf) -> Slice<'_, f32> {
    memory.slice(matrix.start..memory.len())
}
