//! Rows of a matrix by index, and sparse gradients added to rows.

use steptime_aten::Dtype;
use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Lookups, Order, Pooling, Table, Tables, gather};

use steptime_step::TensorId;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::error::Failure;
use crate::kernel::{Function, Kernel};
use crate::row::{Row, runs};
use crate::run::Run;
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

/// `add_(self, other, alpha)` with a sparse `other`, outside of an optimizer: the sum of two sparse gradients has the rows of both.
pub(super) fn add(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let ([to, other], sum) = ([b.id(0)?, b.id(1)?], b.result(0)?);
    if !b.value(to).is_sparse() || !b.is_none(2) && b.number(2)? != 1.0 {
        return Err("a sparse tensor is added outside of `Optimizer.step`".to_owned());
    }
    let parts = |tensor| b.places.sparse.get(&tensor).ok_or("the parts of its sparse tensor are not known");
    let all = parts(to)?.iter().chain(parts(other)?).copied().collect();
    b.places.sparse.insert(sum, all);
    Ok(Built::Nothing)
}

/// Gradient descent of a table by its sparse gradient: rows change by the sum of their gradients, in the order of the lookups. The terms of a sum of
/// gradients follow one another.
pub(super) fn descent(
    b: &mut Binder<'_, '_>,
    table: TensorId,
    gradient: TensorId,
) -> Result<Function, Refusal> {
    let parts = b.places.sparse.get(&gradient).ok_or("the parts of its sparse gradient are not known")?;
    let parts = parts.clone();
    let to = b.tensor(table, Access::Change)?;
    of_type(&to, Dtype::F32)?;
    in_order(&to)?;
    let &[_, width] = to.shape() else { return Err("it adds to rows of a matrix".to_owned()) };
    let mut terms = parts.into_iter().map(|parts| Term::new(b, parts)).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |run| {
        let table = Table::borrow_mut("rows", to.row_mut(&mut run.memory)?, width)?;
        let mut tables = Tables::new(vec![table], Pooling::Sum);
        let mut update = RowOptimizer::new(RowRule::SGD, run.numbers.rate as f32, &tables)?;
        terms.iter_mut().try_for_each(|term| term.subtract(run, &mut tables, &mut update, width))
    }))
}

/// A sparse gradient: rows by their indices.
struct Term {
    indices: Arg,
    values: Arg,
    offsets: Vec<i64>,
    grouping: Grouping,
}

impl Term {
    fn new(b: &mut Binder<'_, '_>, [indices, values]: [TensorId; 2]) -> Result<Term, Refusal> {
        let [indices, values] = [b.tensor(indices, Access::Read)?, b.tensor(values, Access::Read)?];
        of_type(&indices, Dtype::I64)?;
        [&indices, &values].into_iter().try_for_each(in_order)?;
        let offsets = (0..=indices.len() as i64).collect();
        Ok(Term { indices, values, offsets, grouping: Grouping::new() })
    }

    /// Updates the rows of a table.
    fn subtract(
        &mut self,
        run: &mut Run<'_, '_>,
        tables: &mut Tables<'_>,
        update: &mut RowOptimizer,
        width: usize,
    ) -> Result<(), Failure> {
        let (indices, values) = (self.indices.int_row(&run.memory)?, self.values.row(&run.memory)?);
        let lookups = Lookups::new(indices.len(), indices, &self.offsets[..])?;
        self.grouping.group(run.cpu, tables, &lookups, Bounds::Error)?;
        let gradient = Gradient::new(values, width);
        Ok(update.step(run.cpu, tables, &lookups, &self.grouping, Bounds::Error, &gradient)?)
    }
}
