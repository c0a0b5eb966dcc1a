//! Rows of a matrix by index, and sparse gradients added to rows.

use steptime_aten::Dtype;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Lookups, Order, Pooling, Table, Tables, gather};

use steptime_step::TensorId;

use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::kernel::{Function, Kernel};
use crate::row::{Row, runs};
use crate::slices::Access;

pub(super) const ROWS: &[Row] = &[runs("aten::index_select", index_select)];

/// An index outside of the elements.
#[derive(Debug, thiserror::Error)]
#[error("index {index} is outside of {len} elements")]
struct Outside {
    index: i64,
    len: usize,
}

/// `index_select(self, dim, index)`, along the first dimension.
fn index_select(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.int(1)? != 0 {
        return Err("it is not along the first dimension".to_owned());
    }
    let (from, index) = (b.reads(0)?, b.reads(2)?);
    of_type(&index, Dtype::I64)?;
    let to = b.writes(0)?;
    in_order(&index)?;
    in_order(&to)?;
    if from.dtype == Dtype::I64 && from.shape().len() == 1 {
        return Ok(Built::Kernel(Kernel::new(move |run| {
            let (from, index) = (from.ints(&run.memory)?, index.int_row(&run.memory)?);
            let len = from.len();
            let mut to = to.ints_mut(&mut run.memory)?;
            for (at, &index) in index.iter().enumerate() {
                let found = usize::try_from(index).ok().and_then(|place| from.get(&[place]));
                to.set(&[at], found.ok_or(Outside { index, len })?);
            }
            Ok(())
        })));
    }
    of_type(&from, Dtype::F32)?;
    let &[rows, width] = from.shape() else { return Err("it takes rows of a matrix".to_owned()) };
    let pitch = from.layout.strides()[0];
    if from.layout.strides()[1] != 1 && width > 1 {
        return Err("the rows of its matrix are not contiguous".to_owned());
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let view = from.floats(&run.memory)?;
        let bytes = bytemuck::cast_slice(&view.elements()[view.offset()..]);
        let table = Table::borrow_bytes(
            "rows",
            bytes,
            [rows, width],
            steptime_ops::embedding::Element::F32,
            4 * pitch,
        )?;
        let index = index.int_row(&run.memory)?;
        gather(run.cpu, &table, index, Bounds::Error, Order::Auto, to.row_mut(&mut run.memory)?, width)?;
        Ok(())
    })))
}

/// `add_(self, other, alpha)` with a sparse `other`, outside of an optimizer.
pub(super) fn add(_: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    Err("a sparse tensor is added outside of `Optimizer.step`".to_owned())
}

/// Gradient descent of a table by its sparse gradient: rows change by the sum of their gradients, in the order of the lookups.
pub(super) fn descent(
    b: &mut Binder<'_, '_>,
    table: TensorId,
    gradient: TensorId,
) -> Result<Function, Refusal> {
    let parts = *b.places.sparse.get(&gradient).ok_or("the parts of its sparse gradient are not known")?;
    let to = b.tensor(table, Access::Change)?;
    let [indices, values] = [b.tensor(parts[0], Access::Read)?, b.tensor(parts[1], Access::Read)?];
    of_type(&indices, Dtype::I64)?;
    of_type(&to, Dtype::F32)?;
    [&to, &indices, &values].into_iter().try_for_each(in_order)?;
    let &[_, width] = to.shape() else { return Err("it adds to rows of a matrix".to_owned()) };
    let mut grouping = Grouping::new();
    let offsets: Vec<i64> = (0..=indices.len() as i64).collect();
    Ok(Box::new(move |run| {
        let (indices, values) = (indices.int_row(&run.memory)?, values.row(&run.memory)?);
        let table = Table::borrow_mut("rows", to.row_mut(&mut run.memory)?, width)?;
        let mut tables = Tables::new(vec![table], Pooling::Sum);
        let lookups = Lookups::new(indices.len(), indices, &offsets[..])?;
        grouping.group(run.cpu, &tables, &lookups, Bounds::Error)?;
        let gradient = Gradient::new(values, width);
        let mut update = RowOptimizer::new(RowRule::SGD, run.numbers.rate as f32, &tables)?;
        Ok(update.step(run.cpu, &mut tables, &lookups, &grouping, Bounds::Error, &gradient)?)
    }))
}
