//! Tensors of one number, and of consecutive integers.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::Function;
use steptime_eager::Role;

use super::pointwise;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::zero_", |b| filled(b.target, b.overwrites(0)?, 0.0)),
    runs("aten::fill_", |b| filled(b.target, b.overwrites(0)?, b.number(1)?)),
    runs("aten::zeros", |b| filled(b.target, b.writes(0)?, 0.0)),
    runs("aten::zeros_like", |b| filled(b.target, b.writes(0)?, 0.0)),
    runs("aten::new_zeros", |b| filled(b.target, b.writes(0)?, 0.0)),
    runs("aten::ones_like", ones_like),
    runs("aten::scalar_tensor", |b| filled(b.target, b.writes(0)?, b.number(0)?)),
    runs("aten::arange", arange),
];

/// Ones; the gradient of a rank's loss is one over the number of ranks: the loss of their job is the mean over all samples.
fn ones_like(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let is_loss = matches!(b.described().named(b.id(0)?), Some((_, Role::Loss)));
    let value = if is_loss { 1.0 / b.described().ranks() as f64 } else { 1.0 };
    filled(b.target, b.writes(0)?, value)
}

fn filled(target: Target, to: Arg, value: f64) -> Result<Built, Refusal> {
    match to.dtype {
        _ if target == Target::Cuda => pointwise::on_gpu(Function::Fill(value), Vec::new(), vec![to]),
        Dtype::F32 => Ok(Built::Kernel(Kernel::new(move |run| {
            let mut to = to.floats_mut(&mut run.memory)?;
            match to.as_mut_slice() {
                Some(all) => {
                    let mut parts: Vec<&mut [f32]> = all.chunks_mut(PART).collect();
                    run.cpu.run_with(&mut parts, |_, part| part.fill(value as f32));
                }
                None => to.fill(value as f32),
            }
            Ok(())
        }))),
        Dtype::I64 => Ok(Built::Kernel(Kernel::new(move |run| {
            to.ints_mut(&mut run.memory)?.fill(value as i64);
            Ok(())
        }))),
        other => Err(format!("it fills {}", other.name())),
    }
}

/// Elements of one part of the work.
const PART: usize = 64 << 10;

/// The integers from 0 on.
fn arange(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let to = b.writes(0)?;
    if to.dtype != Dtype::I64 {
        return Err(format!("it counts in {}", to.dtype.name()));
    }
    if b.target == Target::Cuda {
        return pointwise::on_gpu(Function::Positions, Vec::new(), vec![to]);
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let mut to = to.ints_mut(&mut run.memory)?;
        let mut next = 0;
        to.for_each_row(|row| {
            row.iter_mut().for_each(|value| {
                *value = next;
                next += 1;
            });
        });
        Ok(())
    })))
}
