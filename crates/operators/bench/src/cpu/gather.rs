//! Rows of one table, without pooling.

use steptime_ops::embedding::{Bounds, Order, gather};

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use super::lookups::{Batch, Shape, table};
use crate::Error;
use crate::difference::largest_error;
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "gather",
    about: "Rows of a table, without pooling",
    sizes: "E rows, D columns, B x S lookups",
    keys: &[("E", 65536), ("D", 768), ("B", 32), ("S", 128)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// Token embeddings; one table of DLRM's default without pooling; and rows long enough that column slices may pay.
fn usual(context: &mut Context) -> Result<(), Error> {
    for (name, rows, dim, bags, lookups) in [
        ("tokens", 65536, 768, 32, 128),
        ("DLRM default", 1_000_000, 64, 2048, 10),
        ("long rows", 8192, 4096, 16384, 1),
    ] {
        run(context, name, &Sizes::new([("E", rows), ("D", dim), ("B", bags), ("S", lookups)]))?;
    }
    Ok(())
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let [rows, dim, bags, lookups] = ["E", "D", "B", "S"].map(|key| sizes.get(key));
    // One row more for the rate of random rows; indices twice, for counting the distinct ones; offsets.
    check_memory(&[&[rows, dim], &[dim], &[bags, lookups, dim], &[bags, lookups, 4], &[bags, 2]])?;
    let shape = Shape { rows: vec![rows], dim, bags, lookups };
    let table = table("table", rows, dim)?;
    let mut out = vec![0.0; shape.count() * dim];
    let mut batch = Batch::new(context.init, &shape);
    let row_bytes = table.row_bytes();
    let work = Work {
        random: batch.distinct(&shape) * row_bytes as u64,
        row_bytes,
        table_bytes: shape.table_bytes(),
        sequential: batch.bytes() + 4 * out.len() as u64,
        ..Work::default()
    };
    let look_up = |cpu: &_, batch: &Batch, out: &mut [f32]| {
        gather(cpu, &table, batch.indices(), Bounds::Error, Order::Auto, out, dim).map(|_| ())
    };
    let error = context.verify(|cpu| {
        look_up(cpu, &batch, &mut out)?;
        let expected = batch.indices().iter().flat_map(|&index| table.row(index as usize).as_chunks::<4>().0);
        Ok(largest_error(
            out.iter().copied().zip(expected.map(|&bytes| f64::from(f32::from_ne_bytes(bytes)))),
        ))
    })?;
    let times = context.time(|cpu| {
        batch.draw(&shape);
        timed(|| look_up(cpu, &batch, &mut out))
    })?;
    context.add(Name { op: "gather", pass: "forward", name, sizes }, work, times, error)
}
