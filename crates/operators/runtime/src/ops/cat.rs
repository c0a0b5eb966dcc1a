//! Concatenation.

use steptime_aten::Dtype;
use steptime_cuda::rearrange::Concat;
use steptime_ops::rearrange::concat;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::cat", cat)];

/// `cat(tensors, dim)`.
fn cat(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let parts = b.reads_all(0)?;
    let output = b.writes(0)?;
    let dim = b.int(1)?;
    let dim = usize::try_from(if dim < 0 { dim + output.shape().len() as i64 } else { dim });
    let dim = dim.map_err(|_| "it has no such dimension")?;
    let dtype = output.dtype;
    if !matches!(dtype, Dtype::F32 | Dtype::I64) || parts.iter().any(|part| part.dtype != dtype) {
        return Err("it concatenates floats, or integers".to_owned());
    }
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(match dtype {
            Dtype::I64 => on_gpu::<u64>(parts, dim, output),
            _ => on_gpu::<u32>(parts, dim, output),
        }));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        if dtype == Dtype::I64 {
            let all = parts.iter().map(|part| part.ints(&run.memory)).collect::<Result<Vec<_>, _>>()?;
            return Ok(concat(run.cpu, &all, dim, output.ints_mut(&mut run.memory)?)?);
        }
        let all = parts.iter().map(|part| part.floats(&run.memory)).collect::<Result<Vec<_>, _>>()?;
        Ok(concat(run.cpu, &all, dim, output.floats_mut(&mut run.memory)?)?)
    })))
}

/// The concatenation on a GPU.
fn on_gpu<T: bytemuck::Pod>(parts: Vec<Arg>, dim: usize, output: Arg) -> Kernel {
    Kernel::on_gpu(move |gpu| {
        let layouts: Vec<_> = parts.iter().map(|part| part.layout.clone()).collect();
        let work = Concat::<T>::new(gpu.stream.device(), &layouts, dim, &output.layout)?;
        Ok(Box::new(move |gpu| {
            let all = parts.iter().map(|part| part.device(&gpu.memory)).collect::<Result<Vec<_>, _>>()?;
            Ok(work.run(gpu.stream, &all, &mut output.device_mut(&mut gpu.memory)?)?)
        }))
    })
}
