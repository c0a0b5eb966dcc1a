//! Concatenation.

use bytemuck::Pod;
use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::cast::Cast;
use steptime_cuda::rearrange::{Concat, CopyBatch};
use steptime_cuda::{Device, SliceMut};
use steptime_ops::rearrange::concat;
use steptime_step::TensorId;

use super::cast;
use super::joined_indices::are_joined;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal};
use crate::error::Failure;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::slices::Access;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::cat", cat)];

/// The tensors that have elements.
fn parts(b: &Binder<'_, '_>) -> Result<Vec<TensorId>, Refusal> {
    Ok(b.ids(0)?.iter().copied().filter(|&part| b.value(part).numel() != 0).collect())
}

/// `cat(tensors, dim)`.
fn cat(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let whole = b.places.memory_of(b.result(0)?);
    let joined = |b: &Binder<'_, '_>, part| whole.is_some() && b.places.memory_of(part) == whole;
    let ids = parts(b)?;
    let has_zeros = b.places.pads.contains_key(&b.result(0)?);
    if (ids.iter().all(|&part| joined(b, part)) && !has_zeros) || are_joined(b)? {
        return Ok(Built::Nothing);
    }
    b.takes_halves = true;
    let dtype = b.value(b.result(0)?).dtype;
    let is_mixed = ids.iter().any(|&part| b.value(part).dtype != dtype);
    if ids.iter().any(|&part| joined(b, part)) || (is_mixed && b.target == Target::Cuda) {
        return rest(b);
    }
    let parts = ids.iter().map(|&part| b.tensor(part, Access::Read)).collect::<Result<Vec<_>, _>>()?;
    let output = b.writes(0)?;
    let dim = b.int(1)?;
    let dim = usize::try_from(if dim < 0 { dim + output.shape().len() as i64 } else { dim });
    let dim = dim.map_err(|_| "it has no such dimension")?;
    let dtype = output.dtype;
    let is_half = dtype == Dtype::Bf16 && b.target == Target::Cuda;
    if !(is_half || matches!(dtype, Dtype::F32 | Dtype::I64)) || parts.iter().any(|part| part.dtype != dtype)
    {
        return Err("it concatenates floats, or integers".to_owned());
    }
    if b.target == Target::Cuda {
        let mut start = 0;
        let copy = |part: &Arg| {
            let end = start + part.shape().get(dim).ok_or("its parts have other dimensions")?;
            let layout = output.layout.slice(dim, start..end, 1).map_err(|source| source.to_string())?;
            start = end;
            Ok::<_, Refusal>((part.clone(), Arg { layout, pad: 0, ..output.clone() }))
        };
        let copies = parts.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
        let kernel = match dtype {
            Dtype::I64 => on_gpu::<u64>(parts, dim, output),
            Dtype::Bf16 => on_gpu::<u16>(parts, dim, output),
            _ => on_gpu::<u32>(parts, dim, output),
        };
        return Ok(Built::Kernel(kernel.of_copies(copies)));
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
fn on_gpu<T: Pod>(parts: Vec<Arg>, dim: usize, output: Arg) -> Kernel {
    Kernel::on_gpu(move |gpu| {
        let layouts: Vec<_> = parts.iter().map(|part| part.layout.clone()).collect();
        let work = Concat::<T>::new(gpu.stream.device(), &layouts, dim, &output.layout)?;
        Ok(Box::new(move |gpu| {
            let all = parts.iter().map(|part| part.device(&gpu.memory)).collect::<Result<Vec<_>, _>>()?;
            Ok(work.run(gpu.stream, &all, &mut output.device_mut(&mut gpu.memory)?)?)
        }))
    })
}

/// The inputs that are not stored within the result, each copied to its columns in the type of the result, on a GPU.
fn rest(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let whole = b.places.memory_of(b.result(0)?);
    let ids = parts(b)?;
    let in_place = whole.is_some() && ids.iter().any(|&part| b.places.memory_of(part) == whole);
    let output = if in_place { b.changes_result(0)? } else { b.writes(0)? };
    let (mut start, mut copies) = (0, Vec::new());
    for part in ids {
        let columns = *b.value(part).shape.get(1).ok_or("it concatenates columns of matrices")? as usize;
        if whole.is_none() || b.places.memory_of(part) != whole {
            let from = b.tensor(part, Access::Read)?;
            let columns = start..start + columns;
            let layout = output.layout.slice(1, columns, 1).map_err(|source| source.to_string())?;
            copies.push((from, Arg { layout, pad: 0, ..output.clone() }));
        }
        start += columns;
    }
    let pairs = copies.clone();
    let kernel = Kernel::on_gpu(move |gpu| {
        let all = ColumnCopies::new(gpu.stream.device(), copies)?;
        Ok(Box::new(move |gpu| {
            let mut whole = output.device_mut::<u8>(&mut gpu.memory)?;
            all.words.run(gpu, &mut whole)?;
            all.halves.run(gpu, &mut whole)?;
            all.casts.iter().try_for_each(|cast| cast.run(gpu, &mut whole))
        }))
    });
    Ok(Built::Kernel(kernel.of_copies(pairs)))
}

/// Copies of matrices to columns of another one, by the types of both.
#[derive(Debug)]
struct ColumnCopies {
    words: SameType<u32>,
    halves: SameType<u16>,
    casts: Vec<ColumnCast>,
}

impl ColumnCopies {
    fn new(device: &Device, copies: Vec<(Arg, Arg)>) -> Result<ColumnCopies, Failure> {
        let is = |dtype: Dtype| move |(from, to): &(Arg, Arg)| [from.dtype, to.dtype] == [dtype; 2];
        let (words, rest): (Vec<_>, Vec<_>) = copies.into_iter().partition(is(Dtype::F32));
        let (halves, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(is(Dtype::Bf16));
        let casts = rest.into_iter().map(|(from, to)| ColumnCast::new(device, from, to));
        Ok(ColumnCopies {
            words: SameType::new(device, &words)?,
            halves: SameType::new(device, &halves)?,
            casts: casts.collect::<Result<_, _>>()?,
        })
    }
}

/// Copies of matrices to columns of another one of the same type.
#[derive(Debug)]
struct SameType<T> {
    copies: CopyBatch<T>,
    from: Vec<Arg>,
}

impl<T: Pod> SameType<T> {
    fn new(device: &Device, copies: &[(Arg, Arg)]) -> Result<SameType<T>, Failure> {
        let layouts: Vec<_> =
            copies.iter().map(|(from, to)| (from.layout.clone(), to.layout.clone())).collect();
        let from = copies.iter().map(|(from, _)| from.clone()).collect();
        Ok(SameType { copies: CopyBatch::new(device, &layouts)?, from })
    }

    fn run(&self, gpu: &Gpu<'_, '_>, whole: &mut SliceMut<'_, u8>) -> Result<(), Failure> {
        let all = self.from.iter().map(|from| from.device(&gpu.memory)).collect::<Result<Vec<_>, _>>()?;
        let bytes = whole.len();
        Ok(self.copies.run(gpu.stream, &all, &mut whole.slice(0..bytes).cast())?)
    }
}

/// A copy of a matrix to columns of another one of another type.
#[derive(Debug)]
struct ColumnCast {
    from: Arg,
    to: Arg,
    work: CastWork,
}

#[derive(Debug)]
enum CastWork {
    Narrows(Cast<f32, bf16>),
    Widens(Cast<bf16, f32>),
}

impl ColumnCast {
    fn new(device: &Device, from: Arg, to: Arg) -> Result<ColumnCast, Failure> {
        let matrix = cast::matrix(&from.layout, &to.layout).ok_or("its rows are not neighbours in memory")?;
        let work = match (from.dtype, to.dtype) {
            (Dtype::F32, Dtype::Bf16) => CastWork::Narrows(Cast::new(device, &[matrix])?),
            (Dtype::Bf16, Dtype::F32) => CastWork::Widens(Cast::new(device, &[matrix])?),
            (one, other) => return Err(format!("it copies {} to {}", one.name(), other.name()).into()),
        };
        Ok(ColumnCast { from, to, work })
    }

    fn run(&self, gpu: &Gpu<'_, '_>, whole: &mut SliceMut<'_, u8>) -> Result<(), Failure> {
        let start = |arg: &Arg| arg.layout.offset() * arg.dtype.size() as usize;
        let source = self.from.device::<u8>(&gpu.memory)?;
        let source = source.slice(start(&self.from)..source.len());
        let bytes = whole.len();
        let target = whole.slice(start(&self.to)..bytes);
        match &self.work {
            CastWork::Narrows(cast) => cast.run(gpu.stream, vec![(source.cast(), target.cast())])?,
            CastWork::Widens(cast) => cast.run(gpu.stream, vec![(source.cast(), target.cast())])?,
        }
        Ok(())
    }
}
