//! Sums over dimensions, in double precision.

use steptime_aten::Dtype;
use steptime_cuda::reduce::{Kind, Sum};
use steptime_tensor::{Layout, View};

use super::slope;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::gpu::GpuSlope;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::sum", |b| {
    let dims = b.sizes(1)?;
    reduced(b, &dims, Kind::Sum)
})];

/// Result elements of one part of the work.
const PART: usize = 128;

/// An instruction that computes sums or norms over dimensions.
pub(super) fn reduced(b: &mut Binder<'_, '_>, dims: &[i64], kind: Kind) -> Result<Built, Refusal> {
    let of_columns = kind == Kind::Sum && dims == [0] && b.value(b.result(0)?).dtype == Dtype::F32;
    if of_columns && b.is_half_rows(b.id(0)?) {
        b.takes_halves = true;
        let from = b.floats(0)?;
        let to = b.writes(0)?;
        return slope::on_gpu(GpuSlope::new(&from, None, Some(&to)));
    }
    let from = b.floats(0)?;
    let to = b.writes(0)?;
    of_type(&to, Dtype::F32)?;
    in_order(&to)?;
    if b.target == Target::Cuda {
        let rank = from.shape().len();
        let summed: Vec<usize> = (0..rank).filter(|&at| is_summed(at, rank, dims)).collect();
        return Ok(Built::Kernel(on_gpu(from, summed, kind, to)));
    }
    let before: fn(f64) -> f64 = if kind == Kind::Norm { |x| x * x } else { |x| x };
    let after: fn(f64) -> f64 = if kind == Kind::Norm { f64::sqrt } else { |sum| sum };
    let (kept, summed) = apart(&from, dims)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let view = from.floats(&run.memory)?;
        let to = to.row_mut(&mut run.memory)?;
        let mut parts: Vec<&mut [f32]> = to.chunks_mut(PART).collect();
        run.cpu.run_with(&mut parts, |part, to| {
            part_of(&view, (&kept, &summed), part * PART, to, before, after)
        });
        Ok(())
    })))
}

/// The sums on a GPU.
fn on_gpu(from: Arg, summed: Vec<usize>, kind: Kind, to: Arg) -> Kernel {
    Kernel::on_gpu(move |gpu| {
        let work = Sum::new(gpu.stream.device(), &from.layout, &summed, kind)?;
        Ok(Box::new(move |gpu| {
            let source = from.device(&gpu.memory)?;
            Ok(work.run(gpu.stream, source, &mut to.device_row_mut(&mut gpu.memory)?)?)
        }))
    })
}

/// Whether a dimension is among the summed ones; without any, all are.
fn is_summed(at: usize, rank: usize, dims: &[i64]) -> bool {
    let (at, rank) = (at as i64, rank as i64);
    dims.is_empty() || dims.iter().any(|&dim| dim == at || dim + rank == at)
}

/// The layouts of kept and of summed dimensions.
fn apart(from: &Arg, dims: &[i64]) -> Result<(Layout, Layout), Refusal> {
    let rank = from.shape().len();
    let of = |summed: bool| {
        let places = (0..rank).filter(|&at| is_summed(at, rank, dims) == summed);
        let (shape, strides): (Vec<_>, Vec<_>) =
            places.map(|at| (from.shape()[at], from.layout.strides()[at])).unzip();
        Layout::new(&shape, &strides, 0).map_err(|source| source.to_string())
    };
    Ok((of(false)?, of(true)?))
}

/// Sums for some consecutive elements of the result.
fn part_of(
    view: &View<'_, f32>,
    (kept, summed): (&Layout, &Layout),
    first: usize,
    to: &mut [f32],
    before: fn(f64) -> f64,
    after: fn(f64) -> f64,
) {
    let elements = view.elements();
    let starts: Vec<usize> = (first..first + to.len()).map(|at| view.offset() + position(kept, at)).collect();
    let neighbours = starts.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut sums = vec![0.0_f64; to.len()];
    for at in 0..summed.len() {
        let distance = position(summed, at);
        if neighbours {
            let row = &elements[starts[0] + distance..][..sums.len()];
            sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += before(f64::from(x)));
        } else {
            sums.iter_mut()
                .zip(&starts)
                .for_each(|(sum, start)| *sum += before(f64::from(elements[start + distance])));
        }
    }
    to.iter_mut().zip(sums).for_each(|(to, sum)| *to = after(sum) as f32);
}

/// Position of the `at`-th element of a layout in row-major order.
fn position(layout: &Layout, mut at: usize) -> usize {
    let mut position = layout.offset();
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()).rev() {
        position += at % size * stride;
        at /= size;
    }
    position
}
