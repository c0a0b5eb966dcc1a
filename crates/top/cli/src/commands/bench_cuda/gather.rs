//! Rows that stay apart, in three orders.

use steptime::cuda::embedding::{Gather, GatherOrder, Ints, Table};
use steptime::cuda::{Buffer, randomize};
use steptime::ops::embedding::{Bounds, Element};

use super::context::{Case, Context};
use super::draw::{Draw, distinct};
use super::{Benchmark, Failure};
use crate::commands::bench::random::Random;
use crate::commands::bench::sizes::{Sizes, check_memory};

/// Sets of indices, used in turn.
const SETS: usize = 4;

/// The table of the tiling question.
const USUAL: [(&str, usize); 3] = [("E", 8192), ("D", 4096), ("N", 16384)];

pub const BENCHMARK: Benchmark =
    Benchmark { keys: &USUAL, run, usual: |context| run(context, &Sizes::new(USUAL)) };

/// Runs all orders.
fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Failure> {
    let [rows, dim, lookups] = ["E", "D", "N"].map(|key| sizes.get(key));
    check_memory(&[&[4 * SETS, lookups]])?;
    context.check_memory(&[&[rows, dim], &[lookups, dim], &[4 * SETS, lookups]])?;
    for draw in context.draws(&[Draw::Uniform]) {
        all_orders(context, [rows, dim, lookups], draw)?;
    }
    Ok(())
}

fn all_orders(context: &mut Context, [rows, dim, lookups]: [usize; 3], draw: Draw) -> Result<(), Failure> {
    let stream = context.stream.clone();
    let mut values = Buffer::<f32>::uninit(context.device(), rows * dim)?;
    randomize(&stream, &mut values.as_mut(), 2)?;
    let table = Table::borrow("table", values.as_ref().cast(), [rows, dim], Element::F32, 4 * dim)?;
    let mut random = Random::new(3);
    let drawn: Vec<Vec<i64>> =
        (0..SETS).map(|_| (0..lookups).map(|_| draw.index(&mut random, rows)).collect()).collect();
    let upload = |set: &Vec<i64>| Buffer::from_host(&stream, set);
    let indices = drawn.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    let sort = |set: &Vec<i64>| {
        let mut pairs: Vec<u64> =
            (0_u64..).zip(set).map(|(place, &row)| (row as u64) << 32 | place).collect();
        pairs.sort_unstable();
        Buffer::from_host(&stream, &pairs)
    };
    let pairs = drawn.iter().map(sort).collect::<Result<Vec<_>, _>>()?;
    let mut out = Buffer::<f32>::uninit(context.device(), lookups * dim)?;
    let different = distinct(&drawn[0], rows);
    for (name, order) in [
        ("rows", GatherOrder::Rows),
        ("columns, 512 B", GatherOrder::Columns { slice: 512 }),
        ("columns, 1 KiB", GatherOrder::Columns { slice: 1024 }),
        ("columns, 2 KiB", GatherOrder::Columns { slice: 2048 }),
        ("grouped (sorted before)", GatherOrder::Grouped),
    ] {
        let gather = Gather::new(context.device(), &table, order, 8, dim, Bounds::Error)?;
        let case = Case {
            op: "gather",
            name: name.into(),
            shape: format!("E={rows},D={dim},N={lookups}"),
            indices: draw.name(),
            distinct: different as f64 / lookups as f64,
            bytes: (4 * dim * (different + lookups) + 8 * lookups) as u64,
            flops: 0,
            geometry: vec![gather.geometry(lookups)?],
        };
        context.add(case, |stream, call| {
            if order == GatherOrder::Grouped {
                gather.run(stream, &table, pairs[call % SETS].as_ref(), &mut out.as_mut())
            } else {
                gather.run(stream, &table, Ints::I64(indices[call % SETS].as_ref()), &mut out.as_mut())
            }
        })?;
    }
    Ok(())
}
