//! Copies.

use steptime_aten::Dtype;
use steptime_ops::rearrange;

use super::{cast, pointwise};
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::copy_", copy_),
    runs("aten::clone", clone),
    runs("aten::to", to),
    runs("aten::_to_copy", to),
];

/// `copy_(self, src)`; nothing for a copy to itself.
fn copy_(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if same_memory(b, b.id(0)?, b.id(1)?) {
        return Ok(Built::Nothing);
    }
    b.takes_halves = true;
    let from = b.reads(1)?;
    let to = b.overwrites(0)?;
    copied(b.target, from, to)
}

/// `clone(self, memory_format)`.
fn clone(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.places.shared.contains(&b.op) {
        let (from, to) = (b.id(0)?, b.result(0)?);
        let layout = b.places.locate(from)?.layout;
        let strides = layout.strides().iter().map(|&stride| stride as i64).collect();
        b.places.strides.insert(to, strides);
        if b.places.alias(to, from, 0) {
            return Ok(Built::Nothing);
        }
        b.places.strides.remove(&to);
    }
    b.takes_halves = true;
    let from = b.reads(0)?;
    let to = b.writes(0)?;
    copied(b.target, from, to)
}

/// A conversion or a move: nothing where the result has the memory of the argument.
fn to(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let (from, to) = (b.id(0)?, b.result(0)?);
    Ok(if same_memory(b, from, to) { Built::Nothing } else { Built::Inside })
}

fn same_memory(b: &Binder<'_, '_>, one: steptime_step::TensorId, other: steptime_step::TensorId) -> bool {
    let (first, second) = (b.places.memory_of(one), b.places.memory_of(other));
    one == other || (first.is_some() && first == second)
}

pub(super) fn copied(target: Target, from: Arg, to: Arg) -> Result<Built, Refusal> {
    if target == Target::Cuda {
        let kernel = on_gpu(from.clone(), to.clone())?;
        return Ok(Built::Kernel(pointwise::copy(kernel, &from, &to)));
    }
    match (from.dtype, to.dtype) {
        (Dtype::F32, Dtype::F32) => Ok(Built::Kernel(Kernel::new(move |run| {
            let source = from.floats(&run.memory)?;
            Ok(rearrange::copy(run.cpu, &source, to.floats_mut(&mut run.memory)?)?)
        }))),
        (Dtype::I64, Dtype::I64) => Ok(Built::Kernel(Kernel::new(move |run| {
            let source = from.ints(&run.memory)?;
            Ok(rearrange::copy(run.cpu, &source, to.ints_mut(&mut run.memory)?)?)
        }))),
        (one, other) => Err(refused(one, other)),
    }
}

/// The copy on a GPU.
fn on_gpu(from: Arg, to: Arg) -> Result<Kernel, Refusal> {
    match (from.dtype, to.dtype) {
        (Dtype::Bf16, Dtype::F32) | (Dtype::F32, Dtype::Bf16) => cast::on_gpu(vec![(from, to)]),
        (Dtype::Bf16, Dtype::Bf16) => Ok(of_size::<u16>(from, to)),
        (Dtype::F32, Dtype::F32) => Ok(of_size::<u32>(from, to)),
        (Dtype::I64, Dtype::I64) => Ok(of_size::<u64>(from, to)),
        (one, other) => Err(refused(one, other)),
    }
}

fn refused(from: Dtype, to: Dtype) -> Refusal {
    format!("it converts {} to {}: leave out rules that change types", from.name(), to.name())
}

/// The copy of elements of one size.
fn of_size<T: bytemuck::Pod>(from: Arg, to: Arg) -> Kernel {
    Kernel::on_gpu(move |gpu| {
        let copy = steptime_cuda::rearrange::Copy::<T>::new(gpu.stream.device(), &from.layout, &to.layout)?;
        Ok(Box::new(move |gpu| {
            let source = from.device(&gpu.memory)?;
            Ok(copy.run(gpu.stream, source, &mut to.device_mut(&mut gpu.memory)?)?)
        }))
    })
}
