//! Embedding bags over many tables at once.

use steptime_ops::embedding::{Bounds, Pooling, Tables, forward, forward_reference};

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use super::lookups::{Batch, Shape};
use crate::Error;
use crate::difference::largest_error;
use crate::dlrm::{self, BATCH};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "bag",
    about: "Embedding bags over many tables",
    sizes: "T tables of E rows and D columns, B bags of L lookups",
    keys: &[("T", 8), ("E", 1_000_000), ("D", 64), ("B", BATCH), ("L", 10)],
    run: |context, sizes| case(context, "", &Shape::read(sizes)?),
    usual,
};

/// Most rows of a table: keeps all tables of a model below 2 GiB.
const MOST_ROWS: usize = 400_000;
/// Bytes of the sweep's table: far more than the last-level cache.
const SWEEP_BYTES: usize = 256 << 20;

/// DLRM's tables, then one table with rows of many lengths.
fn usual(context: &mut Context) -> Result<(), Error> {
    for model in dlrm::ALL {
        let (rows, name) = (model.rows_up_to(MOST_ROWS), model.name_up_to(MOST_ROWS));
        let shape = Shape { rows, dim: model.dim, bags: BATCH, lookups: model.lookups };
        case(context, &format!("DLRM {name}"), &shape)?;
    }
    for dim in [16usize, 32, 64, 128, 256] {
        let shape = Shape { rows: vec![SWEEP_BYTES / (4 * dim)], dim, bags: BATCH, lookups: 20 };
        case(context, "sweep", &shape)?;
    }
    Ok(())
}

fn case(context: &mut Context, name: &str, shape: &Shape) -> Result<(), Error> {
    let tables = Tables::new(shape.tables(0)?, Pooling::Sum);
    let mut batch = Batch::new(context.init, shape);
    let columns = tables.columns();
    let mut out = vec![0.0; shape.bags * columns];
    let (count, dim, outputs) = (shape.count() as u64, shape.dim as u64, out.len() as u64);
    let random = batch.distinct(shape) * 4 * dim;
    let work = Work {
        random,
        row_bytes: 4 * shape.dim,
        table_bytes: shape.table_bytes(),
        sequential: batch.bytes() + 4 * outputs,
        flops: count * dim,
        // A gather of all rows, which a sum then reads.
        unfused: Some(random + batch.bytes() + 4 * (2 * count * dim + outputs)),
    };
    let error = context.verify(|cpu| {
        forward(cpu, &tables, &batch.lookups()?, Bounds::Error, &mut out, columns)?;
        let mut expected = vec![0.0; out.len()];
        forward_reference(&tables, &batch.lookups()?, Bounds::Error, &mut expected, columns)?;
        Ok(largest_error(out.iter().copied().zip(expected.into_iter().map(f64::from))))
    })?;
    let times = context.time(|cpu| {
        batch.draw(shape);
        let lookups = batch.lookups()?;
        timed(|| forward(cpu, &tables, &lookups, Bounds::Error, &mut out, columns).map(|_| ()))
    })?;
    let sizes = shape.sizes();
    context.add(Name { op: "bag", pass: "forward", name, sizes: &sizes }, work, times, error)
}
