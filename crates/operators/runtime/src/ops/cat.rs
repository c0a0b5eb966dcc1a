//! Concatenation.

use steptime_aten::Dtype;
use steptime_cuda::rearrange::{Concat, Copy};
use steptime_ops::rearrange::concat;
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::slices::Access;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::cat", cat)];

/// `cat(tensors, dim)`.
fn cat(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let whole = b.places.memory_of(b.result(0)?);
    let joined = |b: &Binder<'_, '_>, part| whole.is_some() && b.places.memory_of(part) == whole;
    let ids = b.ids(0)?;
    let has_zeros = b.places.pads.contains_key(&b.result(0)?);
    if ids.iter().all(|&part| joined(b, part)) && !has_zeros {
        return Ok(Built::Nothing);
    }
    if ids.iter().any(|&part| joined(b, part)) {
        return rest(b);
    }
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

/// The inputs that are not stored within the result, each copied to its columns, on a GPU.
fn rest(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let whole = b.places.memory_of(b.result(0)?);
    let ids: Vec<_> = b.ids(0)?.to_vec();
    let output = b.changes_result(0)?;
    of_type(&output, Dtype::F32)?;
    let (mut start, mut copies) = (0, Vec::new());
    for part in ids {
        let columns = *b.value(part).shape.get(1).ok_or("it concatenates columns of matrices")? as usize;
        if b.places.memory_of(part) != whole {
            let from = b.tensor(part, Access::Read)?;
            of_type(&from, Dtype::F32)?;
            let to =
                output.layout.slice(1, start..start + columns, 1).map_err(|source| source.to_string())?;
            copies.push((from, to));
        }
        start += columns;
    }
    Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
        let device = gpu.stream.device();
        let compile = |(from, to): &(Arg, Layout)| Copy::<u32>::new(device, &from.layout, to);
        let all = copies.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(move |gpu| {
            let mut to = output.device_mut(&mut gpu.memory)?;
            for (copy, (from, _)) in all.iter().zip(&copies) {
                copy.run(gpu.stream, from.device(&gpu.memory)?, &mut to)?;
            }
            Ok(())
        }))
    })))
}
