//! Elements of each sample's matrix at given rows and columns, and their gradient.

use steptime_aten::Dtype;
use steptime_cuda::index::Pairs;

use super::reorder;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::error::Failure;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::slices::Slices;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::index", index), runs("aten::_index_put_impl_", index_put)];

/// Indices outside of the matrix.
#[derive(Debug, thiserror::Error)]
#[error("({row}, {column}) is outside of a {rows} x {columns} matrix")]
struct Outside {
    row: i64,
    column: i64,
    rows: usize,
    columns: usize,
}

/// The reason for the refusal of other indices.
const OTHERS: &str =
    "it takes rows and columns of each sample's matrix; other indices have no implementation";

/// Indices of rows and of columns: the last two of a list of three, the first of which selects all samples.
fn pairs(b: &mut Binder<'_, '_>) -> Result<[Arg; 2], Refusal> {
    let (rows, columns) = match *b.ids(1)? {
        // The first is absent.
        [all, rows, columns] if !b.places.is_placed(all) => (rows, columns),
        _ => return Err(OTHERS.to_owned()),
    };
    let pairs =
        [b.tensor(rows, crate::slices::Access::Read)?, b.tensor(columns, crate::slices::Access::Read)?];
    for one in &pairs {
        of_type(one, Dtype::I64)?;
        in_order(one)?;
    }
    Ok(pairs)
}

/// Positions of the pairs within a matrix with these strides.
fn positions(
    pairs: &[Arg; 2],
    memory: &Slices<'_>,
    [rows, columns]: [usize; 2],
    [down, right]: [usize; 2],
) -> Result<Vec<usize>, Failure> {
    let [first, second] = [pairs[0].int_row(memory)?, pairs[1].int_row(memory)?];
    let position = |(&row, &column): (&i64, &i64)| {
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|&at| at < size);
        let (at, to) = (inside(row, rows), inside(column, columns));
        at.zip(to).map(|(at, to)| at * down + to * right).ok_or(Outside { row, column, rows, columns })
    };
    Ok(first.iter().zip(second).map(position).collect::<Result<_, _>>()?)
}

/// Pairs of rows and columns in a batch of matrices on a GPU.
fn compiled(gpu: &Gpu<'_, '_>, of: &Arg, count: usize) -> Result<Pairs, Failure> {
    let (&[batch, rows, columns], &[sample, down, right]) = (of.shape(), of.layout.strides()) else {
        return Err("its operand is not a batch of matrices".into());
    };
    let offset = of.layout.offset();
    Ok(Pairs::new(gpu.stream.device(), batch, [rows, columns], [sample, down, right], offset, count)?)
}

/// `index(self, [None, rows, columns])`: `[batch, pairs]`.
fn index(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if let Some(order) = reorder::order(b)? {
        return reorder::index(b, &order);
    }
    let pairs = pairs(b)?;
    let from = b.floats(0)?;
    let to = b.writes(0)?;
    in_order(&to)?;
    let (&[batch, ..], &[of, count]) = (from.shape(), to.shape()) else {
        return Err("its result is not a matrix".to_owned());
    };
    if from.shape().len() != 3 || batch != of {
        return Err("its input is not a batch of matrices".to_owned());
    }
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let work = compiled(gpu, &from, count)?;
            Ok(Box::new(move |gpu| {
                let [rows, columns] = pairs.each_ref().map(|pair| pair.device_row(&gpu.memory));
                let source = from.device(&gpu.memory)?;
                let mut to = to.device_row_mut(&mut gpu.memory)?;
                Ok(work.gather(gpu.stream, source, rows?, columns?, &mut to)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (_, sizes, strides) = from.plane(0);
        let positions = positions(&pairs, &run.memory, sizes, strides)?;
        let view = from.floats(&run.memory)?;
        let elements = view.elements();
        let mut rows: Vec<_> = to.row_mut(&mut run.memory)?.chunks_mut(count.max(1)).collect();
        run.cpu.run_with(&mut rows, |sample, row| {
            let start = from.plane(sample).0;
            row.iter_mut().zip(&positions).for_each(|(to, &at)| *to = elements[start + at]);
        });
        Ok(())
    })))
}

/// `_index_put_impl_(self, [None, rows, columns], values, accumulate, unsafe)`: adds values to a batch of matrices.
fn index_put(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if let Some(order) = reorder::order(b)? {
        return reorder::index_put(b, &order);
    }
    let pairs = pairs(b)?;
    let from = b.floats(2)?;
    let to = b.changes(0)?;
    of_type(&to, Dtype::F32)?;
    in_order(&to)?;
    if to.shape().len() != 3 || from.shape().len() != 2 {
        return Err("it does not add to a batch of matrices".to_owned());
    }
    if b.target == Target::Cuda {
        let &[down, right] = from.layout.strides() else {
            return Err("its values are not a matrix".to_owned());
        };
        let (start, count) = (from.layout.offset(), from.shape()[1]);
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let work = compiled(gpu, &to, count)?;
            Ok(Box::new(move |gpu| {
                let [rows, columns] = pairs.each_ref().map(|pair| pair.device_row(&gpu.memory));
                let values = from.device(&gpu.memory)?;
                let values = values.slice(start..values.len());
                let mut to = to.device_mut(&mut gpu.memory)?;
                Ok(work.add(gpu.stream, values, [down, right], rows?, columns?, &mut to)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (_, sizes, strides) = to.plane(0);
        let positions = positions(&pairs, &run.memory, sizes, strides)?;
        let view = from.floats(&run.memory)?;
        let (elements, places) = (view.elements(), view.strides());
        let size = (sizes[0] * sizes[1]).max(1);
        let mut samples: Vec<_> = to.row_mut(&mut run.memory)?.chunks_mut(size).collect();
        run.cpu.run_with(&mut samples, |sample, matrix| {
            let start = view.offset() + sample * places[0];
            positions.iter().enumerate().for_each(|(at, &position)| {
                matrix[position] += elements[start + at * places[1]];
            });
        });
        Ok(())
    })))
}
