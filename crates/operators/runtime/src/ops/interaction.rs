//! Dot interaction as one op.

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::interaction as gpu;
use steptime_cuda::{Float, Slice};
use steptime_ops::interaction::{Features, FeaturesMut, Interaction};

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] =
    &[runs("steptime::interaction", forward), runs("steptime::interaction_backward", backward)];

/// `interaction(vectors, plan)`: the first vector of each sample, and the products of all pairs.
fn forward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = b.are_halves(&[b.id(0)?, b.result(0)?]);
    let vectors = b.floats(0)?;
    let to = b.writes(0)?;
    let own = interaction(vectors.shape())?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(match one_type(&vectors, &to)? {
            Dtype::Bf16 => forward_on_gpu::<bf16>(own, vectors, to)?,
            _ => forward_on_gpu::<f32>(own, vectors, to)?,
        }));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let features = Features::Stacked(vectors.floats(&run.memory)?);
        Ok(own.forward(run.cpu, &features, to.floats_mut(&mut run.memory)?)?)
    })))
}

/// `interaction_backward(grad, vectors, plan)`.
fn backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = b.are_halves(&[b.id(0)?, b.id(1)?, b.result(0)?]);
    let (grad, vectors) = (b.floats(0)?, b.floats(1)?);
    let to = b.writes(0)?;
    let own = interaction(vectors.shape())?;
    let shape = vectors.shape().to_vec();
    if b.target == Target::Cuda {
        one_type(&vectors, &to)?;
        return Ok(Built::Kernel(match one_type(&vectors, &grad)? {
            Dtype::Bf16 => backward_on_gpu::<bf16>(own, vectors, grad, to)?,
            _ => backward_on_gpu::<f32>(own, vectors, grad, to)?,
        }));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let features = Features::Stacked(vectors.floats(&run.memory)?);
        let grad = grad.floats(&run.memory)?;
        let to = FeaturesMut::Stacked(to.floats_mut(&mut run.memory)?.reshape(&shape)?);
        Ok(own.backward(run.cpu, &features, &grad, to)?)
    })))
}

/// The type of both operands.
fn one_type(one: &Arg, other: &Arg) -> Result<Dtype, Refusal> {
    of_type(other, one.dtype).map(|()| one.dtype)
}

fn forward_on_gpu<T: Float>(own: Interaction, vectors: Arg, to: Arg) -> Result<Kernel, Refusal> {
    let (strides, stride, aligned) = on_gpu(&vectors, &to)?;
    let samples = vectors.shape()[0];
    Ok(Kernel::on_gpu(move |gpu| {
        let work = gpu::Interaction::<T>::new(gpu.stream.device(), own, aligned)?;
        Ok(Box::new(move |gpu| {
            let features = gpu::Features::stacked(from(vectors.device(&gpu.memory)?, &vectors), strides);
            let (_, mut out) = to.device_mut(&mut gpu.memory)?.split_at(to.layout.offset());
            Ok(work.forward(gpu.stream, samples, &features, &mut out, stride)?)
        }))
    }))
}

fn backward_on_gpu<T: Float>(own: Interaction, vectors: Arg, grad: Arg, to: Arg) -> Result<Kernel, Refusal> {
    let (strides, stride, aligned) = on_gpu(&vectors, &grad)?;
    let shape = vectors.shape().to_vec();
    let flat = to.layout.reshape(&shape).map_err(|source| source.to_string())?;
    let result = gpu::Strides { sample: flat.strides()[0], vector: flat.strides()[1] };
    let aligned = aligned && is_aligned(&[result.sample, result.vector, flat.offset()], &to);
    Ok(Kernel::on_gpu(move |gpu| {
        let work = gpu::Interaction::<T>::new(gpu.stream.device(), own, aligned)?;
        Ok(Box::new(move |gpu| {
            let features = gpu::Features::stacked(from(vectors.device(&gpu.memory)?, &vectors), strides);
            let gradient = from(grad.device(&gpu.memory)?, &grad);
            let (_, out) = to.device_mut(&mut gpu.memory)?.split_at(flat.offset());
            let mut out = gpu::FeaturesMut::stacked(out, result);
            Ok(work.backward(gpu.stream, shape[0], &features, gradient, stride, &mut out)?)
        }))
    }))
}

/// Whether positions of elements are multiples of 16 bytes.
fn is_aligned(positions: &[usize], of: &Arg) -> bool {
    positions.iter().all(|at| (at * of.dtype.size() as usize).is_multiple_of(16))
}

fn interaction(shape: &[usize]) -> Result<Interaction, Refusal> {
    let &[_, features, width] = shape else { return Err("its vectors are not a batch".to_owned()) };
    Interaction::new(features, width, false).map_err(|source| source.to_string())
}

/// Strides of vectors, elements from row to row of the output or its gradient, and whether vectors are aligned.
fn on_gpu(vectors: &Arg, rows: &Arg) -> Result<(gpu::Strides, usize, bool), Refusal> {
    let (&[sample, vector, 1], &[stride, 1]) = (vectors.layout.strides(), rows.layout.strides()) else {
        return Err("the elements of its vectors or of its result are not neighbours".to_owned());
    };
    let aligned = is_aligned(&[sample, vector, vectors.layout.offset()], vectors);
    Ok((gpu::Strides { sample, vector }, stride, aligned))
}

/// The memory from an operand's first element on.
fn from<'a, T: Float>(memory: Slice<'a, T>, arg: &Arg) -> Slice<'a, T> {
    memory.slice(arg.layout.offset()..memory.len())
}
