//! Products of matrices on a GPU, by the layouts and types of their operands.

mod gemm;
mod small_copy;

use bytemuck::Pod;
use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::cast::{Cast, Matrix};
use steptime_cuda::gemm::{Blas, Epilogue, Math, Shape};
use steptime_cuda::{Buffer, Slice, SliceMut, Stream};
use steptime_ops::gemm::Activation;

use self::gemm::TypedGemm;
use self::small_copy::SmallCopy;
use super::operand::RowsOf;
use super::work::Gpu;
use crate::arg::Arg;
use crate::error::Failure;

/// A product `to = activation(left right + bias)`, or one for each index of a first dimension.
///
/// Zeros behind the rows of an operand take part in the product: a GPU multiplies much faster where numbers of columns are multiples of four.
#[derive(Debug, Clone)]
pub(crate) struct GpuProduct {
    args: [Arg; 3],
    bias: Option<Arg>,
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
    /// Where neither the rows nor the columns of a matrix are neighbours in memory, or the result is stored by columns; where the types are not
    /// those of a product.
    pub(crate) fn new(left: &Arg, right: &Arg, bias: Option<&Arg>, to: &Arg) -> Result<GpuProduct, String> {
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
        let types = [left.dtype, right.dtype, to.dtype];
        let known = [[Dtype::F32; 3], [Dtype::Bf16; 3], [Dtype::Bf16, Dtype::Bf16, Dtype::F32]];
        if !known.contains(&types) {
            let names = types.map(|dtype| dtype.name());
            return Err(format!("it multiplies {} by {} to {}", names[0], names[1], names[2]));
        }
        let count = if to.shape().len() == 3 { to.shape()[0] } else { 1 };
        let batch = (count, [apart(left), apart(right), apart(to)]);
        let args = [left, right, to].map(Arg::clone);
        let (left, right, to) = (rows(left)?, rows(right)?, rows(to)?);
        if to.transposed {
            return Err("its result is stored by columns".to_owned());
        }
        Ok(GpuProduct { args, bias: bias.cloned(), left, right, to, batch })
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
        activation: Activation,
    ) -> Result<GpuGemm, Failure> {
        let GpuProduct { left, right, to, batch: (count, apart), .. } = *self;
        let [factor, _, result_type] = [0, 1, 2].map(|at| self.args[at].dtype);
        let [size, size_of_result] = [factor, result_type].map(|dtype| dtype.size() as usize);
        let is_small = count == 1 && LARGER * right.rows * right.columns <= left.rows * left.columns;
        let is_turned_faster = math == Math::Tf32 && factor == Dtype::F32 && right.pad == 0;
        let turned = is_small && !right.transposed && is_turned_faster;
        let zeros = [left.pad, to.pad.max(right.pad)];
        let right_copy = (turned || left.pad > 0 || to.pad > 0)
            .then(|| SmallCopy::of_factor(stream, right, zeros, turned || right.transposed, size));
        let right_copy = right_copy.transpose()?;
        // A right matrix with zeros makes columns that the result does not have.
        let to_copy = (right.pad > 0 && to.pad == 0)
            .then(|| SmallCopy::of_result(stream, to, right.pad, size_of_result));
        let to_copy = to_copy.transpose()?;
        let used = right_copy.as_ref().map_or(right, |copy| copy.rows);
        let result = to_copy.as_ref().map_or(to, |copy| copy.rows);
        let aligned = [(left, size), (used, size), (result, size_of_result)];
        let aligned = aligned.iter().all(|(matrix, size)| (matrix.start * size).is_multiple_of(16));
        let sizes = [to.rows, to.columns + to.pad.max(right.pad), left.columns + left.pad];
        let shape = Shape::new(sizes, left.transposed, used.transposed)
            .with_strides([left.stride, used.stride, result.stride])
            .with_batch(count, apart)
            .with_alignment(if aligned { 16 } else { size.max(size_of_result) });
        let epilogue = Epilogue { bias: self.bias.is_some(), activation };
        let bias = self.bias.as_ref().filter(|bias| bias.dtype != result_type);
        Ok(GpuGemm {
            gemm: TypedGemm::new(blas, [factor, result_type], shape, math, epilogue)?,
            right: right_copy,
            to: to_copy,
            bias: bias.map(|bias| WideBias::new(stream, bias.len())).transpose()?,
        })
    }

    /// Multiplies the matrices in the memory of their operands, as a part of the instruction.
    pub(crate) fn run(
        &self,
        work: &mut GpuGemm,
        gpu: &mut Gpu<'_, '_>,
        left: Slice<'_, u8>,
        right: Slice<'_, u8>,
        to: SliceMut<'_, u8>,
    ) -> Result<(), Failure> {
        let [left_arg, right_arg, to_arg] = &self.args;
        let GpuGemm { gemm, right: right_copy, to: to_copy, bias: wide } = work;
        let mut copied = None;
        let right = match right_copy {
            None => from(right, self.right, right_arg),
            Some(copy) => {
                copy.fill(gpu.stream, right)?;
                copied = gpu.end_part(&[right_arg], &[], None)?;
                copy.buffer.as_ref()
            }
        };
        let left = from(left, self.left, left_arg);
        let bias = self.bias.as_ref().map(|bias| bias.device_bytes(&gpu.memory)).transpose()?;
        let bias = match (bias, wide) {
            (Some(bias), Some(wide)) => Some(wide.run(gpu.stream, bias)?),
            (bias, _) => bias,
        };
        match to_copy {
            None => {
                let (_, mut to) = to.split_at(self.to.start * to_arg.dtype.size() as usize);
                gemm.run(gpu.stream, left, right, &mut to, bias)?;
            }
            Some(copy) => {
                gemm.run(gpu.stream, left, right, &mut copy.buffer.as_mut(), bias)?;
                copy.store(gpu.stream, to)?;
            }
        }
        let read: Vec<&Arg> = [left_arg, right_arg].into_iter().chain(&self.bias).collect();
        gpu.end_part(&read, &[to_arg], copied)?;
        Ok(())
    }
}

/// A product with the copies of its small operands.
#[derive(Debug)]
pub(crate) struct GpuGemm {
    gemm: TypedGemm,
    right: Option<SmallCopy>,
    to: Option<SmallCopy>,
    bias: Option<WideBias>,
}

/// Least number of elements of the left matrix for each of the right one, for a copy of the right one to be worth its time.
const LARGER: usize = 8;

/// A bias of 16 bits in 32-bit floats, as a product with a result of these takes.
#[derive(Debug)]
struct WideBias {
    cast: Cast<bf16, f32>,
    buffer: Buffer<f32>,
}

impl WideBias {
    fn new(stream: &Stream, len: usize) -> Result<WideBias, Failure> {
        let matrix = Matrix::new([1, len], false, 1);
        Ok(WideBias { cast: Cast::new(stream.device(), &[matrix])?, buffer: Buffer::zeros(stream, len)? })
    }

    fn run(&mut self, stream: &Stream, bias: Slice<'_, u8>) -> Result<Slice<'_, u8>, Failure> {
        self.cast.run(stream, vec![(bias.cast(), self.buffer.as_mut())])?;
        Ok(bytes(self.buffer.as_ref()))
    }
}

/// The memory from a matrix's first element on.
fn from<'a>(memory: Slice<'a, u8>, matrix: RowsOf, arg: &Arg) -> Slice<'a, u8> {
    memory.slice(matrix.start * arg.dtype.size() as usize..memory.len())
}

fn bytes<T: Pod>(slice: Slice<'_, T>) -> Slice<'_, u8> {
    slice.cast()
}
