//! The dense gradients of tables: of one table, and of several in one call.

use half::bf16;
use steptime_aten::Dtype;
use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Gradient, sparse_gradients};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Element, Lookups, Pooling, Table, Tables};

use super::embedding_bag::pooling;
use super::pooled::rows_in_order;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::error::Failure;
use crate::gpu::{DenseGradientArgs, GpuDenseGradient, GpuDenseGradients, GpuWork};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::slices::Access;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::_embedding_bag_dense_backward", dense),
    runs("steptime::embedding_bag_dense_backward", dense_of_tables),
];

/// `_embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
/// per_sample_weights, padding_idx)`.
fn dense(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let pooling = pooling(b.int(7)?)?;
    if b.int(6)? != 0 || !b.is_none(8) {
        return Err("it has frequencies or weights".to_owned());
    }
    let (grad, indices, size) = (b.floats(0)?, b.reads(1)?, b.reads(3)?);
    for ints in [&indices, &size] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    in_order(&grad)?;
    let to = b.writes(0)?;
    of_type(&to, Dtype::F32)?;
    in_order(&to)?;
    let &[rows, width] = to.shape() else { return Err("its table is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        let work = GpuDenseGradient { gradient: grad, indices, sizes: size, to, pooling, work: None };
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(work))));
    }
    let mut grouping = Grouping::new();
    Ok(Built::Kernel(Kernel::new(move |run| {
        let indices = indices.int_row(&run.memory)?;
        let mut ends = vec![0];
        ends.extend(size.int_row(&run.memory)?.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let lookups = Lookups::new(ends.len() - 1, indices, &ends[..])?;
        let gradient = grad.row(&run.memory)?;
        let to = (to.row_mut(&mut run.memory)?, [rows, width]);
        compute(run.cpu, vec![to], pooling, &lookups, &mut grouping, gradient)
    })))
}

/// `embedding_bag_dense_backward(grad, indices, offsets, rows, columns, mode, lookups)`: the gradients of all tables.
fn dense_of_tables(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let pooling = pooling(b.int(5)?)?;
    let (gradient, indices, offsets) = (b.floats(0)?, b.reads(1)?, b.reads(2)?);
    for ints in [&indices, &offsets] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    rows_in_order(b.target, &gradient)?;
    let made = b.call()?.outputs.first().map_or(&[][..], |made| made.tensors());
    let mut to = Vec::with_capacity(made.len());
    let mut shapes = Vec::with_capacity(made.len());
    for &made in made {
        let one = b.tensor(made, Access::Write)?;
        of_type(&one, Dtype::F32)?;
        in_order(&one)?;
        let &[rows, width] = one.shape() else { return Err("a table is not a matrix".to_owned()) };
        shapes.push([rows, width]);
        to.push(one);
    }
    let &[bags, columns] = gradient.shape() else { return Err("its gradient is not a matrix".to_owned()) };
    if to.is_empty() || columns != shapes.iter().map(|shape| shape[1]).sum::<usize>() {
        return Err(format!("its gradient has {columns} columns, its {} tables have others", to.len()));
    }
    if b.target == Target::Cuda {
        let counts = if b.is_none(6) { vec![indices.len() as i64] } else { b.sizes(6)? };
        let longest = counts.into_iter().max().and_then(|most| usize::try_from(most).ok());
        let longest = longest.unwrap_or(indices.len());
        let args = DenseGradientArgs { gradient, indices, offsets, to };
        let work: Box<dyn GpuWork> = match args.gradient.dtype {
            Dtype::Bf16 => Box::new(GpuDenseGradients::<bf16>::new(args, pooling, longest)),
            _ => Box::new(GpuDenseGradients::<f32>::new(args, pooling, longest)),
        };
        return Ok(Built::Kernel(Kernel::Gpu(work)));
    }
    let mut grouping = Grouping::new();
    Ok(Built::Kernel(Kernel::new(move |run| {
        let lookups = Lookups::new(bags, indices.int_row(&run.memory)?, offsets.int_row(&run.memory)?)?;
        let gradient = gradient.row(&run.memory)?;
        let mut all = Vec::with_capacity(to.len());
        for (to, &shape) in to.iter().zip(&shapes) {
            all.push((to.row_mut(&mut run.memory)?, shape));
        }
        compute(run.cpu, all, pooling, &lookups, &mut grouping, gradient)
    })))
}

/// Writes the gradients of tables, each with its rows and columns, from the gradient of their bags.
fn compute(
    cpu: &Cpu,
    mut to: Vec<(&mut [f32], [usize; 2])>,
    pooling: Pooling,
    lookups: &Lookups<'_>,
    grouping: &mut Grouping,
    gradient: &[f32],
) -> Result<(), Failure> {
    let mut parts: Vec<&mut [f32]> = to.iter_mut().flat_map(|(to, _)| to.chunks_mut(PART)).collect();
    cpu.run_with(&mut parts, |_, part| part.fill(0.0));
    let mut tables = Vec::with_capacity(to.len());
    for (to, shape) in &to {
        // Only the shape of the table matters: its gradient has the same.
        let bytes = bytemuck::cast_slice(to);
        tables.push(Table::borrow_bytes(
            "the gradient of a table",
            bytes,
            *shape,
            Element::F32,
            4 * shape[1],
        )?);
    }
    let tables = Tables::new(tables, pooling);
    grouping.group(cpu, &tables, lookups, Bounds::Error)?;
    let gradient = Gradient::new(gradient, tables.columns());
    let sparse = sparse_gradients(cpu, &tables, lookups, grouping, Bounds::Error, &gradient)?;
    drop(tables);
    for ((to, [_, width]), table) in to.iter_mut().zip(&sparse) {
        for (&row, values) in table.rows.iter().zip(table.values.chunks(*width)) {
            to[row * *width..][..*width].copy_from_slice(values);
        }
    }
    Ok(())
}

/// Elements of one part of the work.
const PART: usize = 64 << 10;
