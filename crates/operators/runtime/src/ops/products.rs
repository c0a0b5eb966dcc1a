//! Products of matrices, one or a batch of them.

use steptime_aten::Dtype;
use steptime_ops::gemm::{Activation, MatMut, gemm};

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, of_type};
use crate::gpu::GpuProduct;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::mm", mm), runs("aten::bmm", bmm)];

/// `mm(self, mat2)`.
fn mm(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let (left, right) = (b.floats(0)?, b.floats(1)?);
    let to = b.writes(0)?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(on_gpu(left, right, None, Activation::Identity, to)?));
    }
    of_type(&to, Dtype::F32)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (left, right) = (left.matrix(&run.memory, 0)?, right.matrix(&run.memory, 0)?);
        Ok(gemm(run.cpu, 1.0, left, right, 0.0, to.matrix_mut(&mut run.memory)?)?)
    })))
}

/// `to = activation(left right + bias)` on a GPU.
pub(super) fn on_gpu(
    left: Arg,
    right: Arg,
    bias: Option<Arg>,
    activation: Activation,
    to: Arg,
) -> Result<Kernel, Refusal> {
    let product = GpuProduct::new(&left, &right, bias.as_ref(), &to)?;
    Ok(Kernel::on_gpu(move |gpu| {
        let mut gemm = product.compile(gpu.blas, gpu.stream, gpu.math, activation)?;
        Ok(Box::new(move |gpu| {
            let [left, right] = [&left, &right].map(|arg| arg.device(&gpu.memory));
            let to = to.device_mut(&mut gpu.memory)?;
            product.run(&mut gemm, gpu, left?, right?, to)
        }))
    }))
}

/// `bmm(self, mat2)`: a product for each index of the first dimension, in parallel.
fn bmm(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let (left, right) = (b.floats(0)?, b.floats(1)?);
    let to = b.writes(0)?;
    let &[batch, rows, columns] = to.shape() else { return Err("its result is not a batch".to_owned()) };
    if !to.layout.is_contiguous() {
        return Err("its result is not contiguous".to_owned());
    }
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(on_gpu(left, right, None, Activation::Identity, to)?));
    }
    of_type(&to, Dtype::F32)?;
    let alone = steptime_ops::Cpu::new(1).map_err(|source| source.to_string())?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        if rows * columns == 0 {
            return Ok(());
        }
        let all = to.row_mut(&mut run.memory)?;
        let products = (0..batch)
            .map(|at| Ok((left.matrix(&run.memory, at)?, right.matrix(&run.memory, at)?)))
            .collect::<Result<Vec<_>, crate::error::Failure>>()?;
        let mut parts: Vec<_> = all
            .chunks_mut(rows * columns * SAMPLES)
            .zip(products.chunks(SAMPLES))
            .map(|(to, of)| (to, of, Ok(())))
            .collect();
        run.cpu.run_with(&mut parts, |_, (to, of, result)| {
            *result = to.chunks_mut(rows * columns).zip(*of).try_for_each(|(to, &(left, right))| {
                gemm(&alone, 1.0, left, right, 0.0, MatMut::new(to, rows, columns)?)
            });
        });
        Ok(parts.into_iter().try_for_each(|(_, _, result)| result)?)
    })))
}

/// Products of one part of the work.
const SAMPLES: usize = 32;
