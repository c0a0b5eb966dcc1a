//! Products of matrices on a GPU, by the layouts of their operands.

use steptime_cuda::gemm::{Blas, Epilogue, Gemm, Math, Shape};
use steptime_cuda::rearrange::Copy;
use steptime_cuda::{Buffer, Error, Slice, SliceMut, Stream};
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

use super::operand::RowsOf;
use super::work::Gpu;
use crate::arg::Arg;
use crate::error::Failure;

/// A product `to = left right`, or one for each index of a first dimension.
///
/// Zeros behind the rows of an operand take part in the product: a GPU multiplies much faster where numbers of columns are multiples of four.
#[derive(Debug, Clone)]
pub(crate) struct GpuProduct {
    args: [Arg; 3],
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
        let args = [left, right, to].map(Arg::clone);
        let product = GpuProduct { args, left: rows(left)?, right: rows(right)?, to: rows(to)?, batch };
        if product.to.transposed {
            return Err("its result is stored by columns".to_owned());
        }
        Ok(product)
    }

    /// Chooses an algorithm, and allocates the copies of small matrices: of a right one that is stored by rows, as the units of a GPU multiply
    /// 32-bit floats faster where both matrices store the summed dimension's elements as neighbours, and of matrices that need zeros behind
    /// their rows.
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
        let GpuProduct { left, right, to, batch: (count, apart), .. } = *self;
        let is_small = count == 1 && LARGER * right.rows * right.columns <= left.rows * left.columns;
        let turned = is_small && !right.transposed && math == Math::Tf32;
        let zeros = [left.pad, to.pad];
        let right_copy = (turned || zeros != [0; 2])
            .then(|| SmallCopy::of_factor(stream, right, zeros, turned || right.transposed));
        let right_copy = right_copy.transpose()?;
        // A right matrix with zeros makes columns that the result does not have.
        let to_copy = (right.pad > 0 && to.pad == 0).then(|| SmallCopy::of_result(stream, to, right.pad));
        let to_copy = to_copy.transpose()?;
        let used = right_copy.as_ref().map_or(right, |copy| copy.rows);
        let result = to_copy.as_ref().map_or(to, |copy| copy.rows);
        let aligned = [left, used, result].iter().all(|matrix| matrix.start.is_multiple_of(4));
        let sizes = [to.rows, to.columns + to.pad.max(right.pad), left.columns + left.pad];
        let shape = Shape::new(sizes, left.transposed, used.transposed)
            .with_strides([left.stride, used.stride, result.stride])
            .with_batch(count, apart)
            .with_alignment(if aligned { 16 } else { 4 });
        Ok(GpuGemm { gemm: Gemm::new(blas, shape, math, epilogue)?, right: right_copy, to: to_copy })
    }

    /// Multiplies the matrices in the memory of their operands, as a part of the instruction.
    pub(crate) fn run(
        &self,
        work: &mut GpuGemm,
        gpu: &mut Gpu<'_, '_>,
        left: Slice<'_, f32>,
        right: Slice<'_, f32>,
        to: SliceMut<'_, f32>,
        bias: Option<(&Arg, Slice<'_, f32>)>,
    ) -> Result<(), Failure> {
        let [left_arg, right_arg, to_arg] = &self.args;
        let mut copied = None;
        let right = match &mut work.right {
            None => from(right, self.right),
            Some(SmallCopy { copy, buffer, .. }) => {
                copy.run(gpu.stream, right.cast(), &mut buffer.as_mut().cast())?;
                copied = gpu.end_part(&[right_arg], &[], None)?;
                buffer.as_ref()
            }
        };
        let (left, numbers) = (from(left, self.left), bias.map(|(_, bias)| bias));
        match &mut work.to {
            None => {
                let (_, mut to) = to.split_at(self.to.start);
                work.gemm.run(gpu.stream, (1.0, 0.0), left, right, &mut to, numbers)?;
            }
            Some(SmallCopy { copy, buffer, .. }) => {
                work.gemm.run(gpu.stream, (1.0, 0.0), left, right, &mut buffer.as_mut(), numbers)?;
                copy.run(gpu.stream, buffer.as_ref().cast(), &mut to.cast())?;
            }
        }
        let read = [left_arg, right_arg].into_iter().chain(bias.map(|(arg, _)| arg));
        gpu.end_part(&read.collect::<Vec<_>>(), &[to_arg], copied)?;
        Ok(())
    }
}

/// A product with the copies of its small matrices.
#[derive(Debug)]
pub(crate) struct GpuGemm {
    gemm: Gemm<f32>,
    right: Option<SmallCopy>,
    to: Option<SmallCopy>,
}

/// A copy of a matrix.
#[derive(Debug)]
struct SmallCopy {
    buffer: Buffer<f32>,
    rows: RowsOf,
    copy: Copy<u32>,
}

/// Least number of elements of the left matrix for each of the right one, for a copy of the right one to be worth its time.
const LARGER: usize = 8;

impl SmallCopy {
    /// A copy of a right matrix, with so many rows and columns of zeros behind its own.
    fn of_factor(
        stream: &Stream,
        matrix: RowsOf,
        zeros: [usize; 2],
        transposed: bool,
    ) -> Result<SmallCopy, Error> {
        let [rows, columns] = [matrix.rows + zeros[0], matrix.columns + zeros[1]];
        let stride = if transposed { rows } else { columns };
        let own = RowsOf { start: 0, rows, columns, stride, transposed, pad: 0 };
        let part = RowsOf { rows: matrix.rows, columns: matrix.columns, ..own };
        let copy = Copy::new(stream.device(), &layout(matrix)?, &layout(part)?)?;
        Ok(SmallCopy { buffer: Buffer::zeros(stream, rows * columns)?, rows: own, copy })
    }

    /// A copy of a result without its last columns.
    fn of_result(stream: &Stream, to: RowsOf, zeros: usize) -> Result<SmallCopy, Error> {
        let columns = to.columns + zeros;
        let own = RowsOf { start: 0, columns, stride: columns, ..to };
        let part = RowsOf { columns: to.columns, ..own };
        let copy = Copy::new(stream.device(), &layout(part)?, &layout(to)?)?;
        Ok(SmallCopy { buffer: Buffer::zeros(stream, to.rows * columns)?, rows: own, copy })
    }
}

/// The layout of a matrix.
fn layout(matrix: RowsOf) -> Result<Layout, Error> {
    let RowsOf { start, rows, columns, stride, transposed, .. } = matrix;
    let strides = if transposed { [1, stride] } else { [stride, 1] };
    Ok(Layout::new(&[rows, columns], &strides, start).map_err(RearrangeError::from)?)
}

/// The memory from a matrix's first element on.
fn from(memory: Slice<'_, f32>, matrix: RowsOf) -> Slice<'_, f32> {
    memory.slice(matrix.start..memory.len())
}
