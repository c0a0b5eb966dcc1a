//! Embedding bags of several tables in one call, and their gradients with the update of the tables.

use half::bf16;
use steptime_aten::Dtype;
use steptime_ops::embedding::backward::RowRule;
use steptime_ops::embedding::{Bounds, Lookups, Table, Tables, forward};
use steptime_step::TensorId;

use super::embedding_bag::pooling;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::gpu::{BagArgs, GpuBags, GpuRowUpdate, GpuWork};
use crate::inputs::Joined;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::row_update::{RowUpdate, UpdateArgs};
use crate::slices::Access;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("steptime::embedding_bag", pooled),
    runs("steptime::embedding_bag_backward_sgd", |b| update(b, |_| RowRule::SGD)),
    runs("steptime::embedding_bag_backward_adagrad", |b| {
        update(b, |numbers| RowRule::Adagrad { eps: numbers.eps as f32 })
    }),
    runs("steptime::embedding_bag_backward_adam", |b| {
        update(b, |numbers| RowRule::Adam {
            beta1: numbers.beta1 as f32,
            beta2: numbers.beta2 as f32,
            eps: numbers.eps as f32,
        })
    }),
];

/// `embedding_bag(tables, indices, offsets, weights, mode, bits, plan, lookups)`: `[bags, columns of all tables]`.
fn pooled(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if !b.is_none(3) {
        return Err("its lookups have weights".to_owned());
    }
    b.takes_halves = true;
    let pooling = pooling(b.int(4)?)?;
    let names = join(b, 0, 1)?;
    let tables = b.reads_all(0)?;
    let (indices, offsets) = (b.reads(1)?, b.reads(2)?);
    for ints in [&indices, &offsets] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    let to = b.writes(0)?;
    rows_in_order(b.target, &to)?;
    let &[bags, width] = to.shape() else { return Err("its result is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        let args = BagArgs { tables, indices, offsets, to };
        let work: Box<dyn GpuWork> = match args.to.dtype {
            Dtype::Bf16 => Box::new(GpuBags::<bf16>::new(args, names, pooling)),
            _ => Box::new(GpuBags::<f32>::new(args, names, pooling)),
        };
        return Ok(Built::Kernel(Kernel::Gpu(work)));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let mut all = Vec::with_capacity(tables.len());
        for (table, name) in tables.iter().zip(&names) {
            all.push(Table::borrow(name, table.row(&run.memory)?, table.shape()[1])?);
        }
        let tables = Tables::new(all, pooling);
        let lookups = Lookups::new(bags, indices.int_row(&run.memory)?, offsets.int_row(&run.memory)?)?;
        forward(run.cpu, &tables, &lookups, Bounds::Error, to.row_mut(&mut run.memory)?, width)?;
        Ok(())
    })))
}

/// `embedding_bag_backward_*(grad, tables, indices, offsets, weights, mode, plan, lookups)`.
fn update(b: &mut Binder<'_, '_>, rule: fn(&crate::numbers::Numbers) -> RowRule) -> Result<Built, Refusal> {
    if !b.is_none(4) {
        return Err("its lookups have weights".to_owned());
    }
    if b.row().round > 0 {
        return Err(
            "it updates the tables in the backward pass, before the next batch of the update reads them: \
                    accumulate without `operators`"
                .to_owned(),
        );
    }
    b.takes_halves = true;
    let pooling = pooling(b.int(5)?)?;
    let names = join(b, 1, 2)?;
    let ids: Vec<TensorId> = b.ids(1)?.to_vec();
    let mut tables = Vec::with_capacity(ids.len());
    for (at, &table) in ids.iter().enumerate() {
        if ids[..at].contains(&table) {
            return Err("it updates a table twice".to_owned());
        }
        tables.push(b.tensor(table, Access::Change)?);
    }
    tables.iter().try_for_each(in_order)?;
    let (gradient, indices, offsets) = (b.floats(0)?, b.reads(2)?, b.reads(3)?);
    for ints in [&indices, &offsets] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    rows_in_order(b.target, &gradient)?;
    let args = UpdateArgs { gradient, tables, indices, offsets };
    if b.target == Target::Cuda {
        let described = b.described();
        let counts = ids.iter().map(|&table| described.lookup(table).map(|lookup| lookup.count));
        let longest = counts.map(|count| count.unwrap_or(args.indices.len())).max().unwrap_or(0);
        let update = GpuRowUpdate::new(args, names, pooling, rule, longest);
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(update))));
    }
    Ok(Built::Kernel(crate::kernel::Kernel::Rows(Box::new(RowUpdate::new(args, names, pooling, rule)))))
}

/// Checks that elements are neighbours; on a GPU those of each row.
pub(super) fn rows_in_order(target: Target, arg: &Arg) -> Result<(), Refusal> {
    let is_rows = matches!(arg.layout.strides(), [_, 1]);
    if target == Target::Cuda && is_rows { Ok(()) } else { in_order(arg) }
}

/// Notes the joined inputs of the tables at an argument, whose indices and offsets are at the next two; returns the tables' names.
fn join(b: &mut Binder<'_, '_>, at: usize, inputs: usize) -> Result<Vec<String>, Refusal> {
    let tables: Vec<TensorId> = b.ids(at)?.to_vec();
    for (tensor, offsets) in [(b.id(inputs)?, false), (b.id(inputs + 1)?, true)] {
        let memory = b.places.locate(tensor)?.memory;
        let is_known = b.joined.iter().any(|one| b.places.memory_of(one.tensor) == Some(memory));
        let is_made = b.places.memories[memory.0].made;
        if b.row().round > 0 && !is_made {
            let why = "it takes the inputs of its tables joined, which only the first batch of an update has";
            return Err(format!("{why}: accumulate without `operators`"));
        }
        if is_known || is_made {
            continue;
        }
        if tables.iter().any(|&table| b.described().lookup(table).is_none()) {
            return Err("the inputs of its tables are not known".to_owned());
        }
        b.joined.push(Joined { tensor, tables: tables.clone(), offsets });
    }
    let name = |&table: &TensorId| {
        b.described().named(table).map_or_else(|| "a table".to_owned(), |(name, _)| name.clone())
    };
    Ok(tables.iter().map(name).collect())
}
