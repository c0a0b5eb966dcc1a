//! Rows without pooling, in three orders.

use steptime_cuda::embedding::{Gather, GatherOrder, Ints, Table};
use steptime_cuda::{Buffer, Stream, randomize};
use steptime_ops::embedding::{Bounds, Element};

use super::batch::read;
use super::context::{Case, Context};
use super::draw::{Draw, distinct};
use super::{Benchmark, EXACT};
use crate::Error;
use crate::difference::largest_error;
use crate::random::Random;
use crate::sizes::{Sizes, check_memory};

/// Number of index sets, used in turn.
const SETS: usize = 4;

/// Number of rows that are checked.
const CHECKED: usize = 512;

/// The table of the tiling question.
const USUAL: [(&str, usize); 3] = [("E", 8192), ("D", 4096), ("N", 16384)];

pub static BENCHMARK: Benchmark = Benchmark {
    name: "gather",
    about: "Rows of a table, without pooling, in three orders",
    sizes: "E rows, D columns, N lookups",
    keys: &USUAL,
    run,
    usual: |context| run(context, &Sizes::new(USUAL)),
};

/// Runs all orders.
fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [rows, dim, lookups] = ["E", "D", "N"].map(|key| sizes.get(key));
    check_memory(&[&[4 * SETS, lookups]])?;
    context.check_memory(&[&[rows, dim], &[lookups, dim], &[4 * SETS, lookups]])?;
    for draw in context.draws(&[Draw::Uniform]) {
        all_orders(context, [rows, dim, lookups], draw)?;
    }
    Ok(())
}

fn all_orders(context: &mut Context, [rows, dim, lookups]: [usize; 3], draw: Draw) -> Result<(), Error> {
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
        let run = |stream: &Stream, set: usize, out: &mut Buffer<f32>| {
            if order == GatherOrder::Grouped {
                gather.run(stream, &table, pairs[set].as_ref(), &mut out.as_mut())
            } else {
                gather.run(stream, &table, Ints::I64(indices[set].as_ref()), &mut out.as_mut())
            }
        };
        let verified = context.verify(EXACT, |stream| {
            run(stream, 0, &mut out)?;
            let mut largest = 0.0_f64;
            for place in (0..lookups).step_by(lookups.div_ceil(CHECKED)) {
                let row = drawn[0][place] as usize;
                let found = read(stream, out.as_ref().slice(place * dim..(place + 1) * dim))?;
                let expected = read(stream, values.as_ref().slice(row * dim..(row + 1) * dim))?;
                largest =
                    largest.max(largest_error(found.into_iter().zip(expected.into_iter().map(f64::from))));
            }
            Ok(largest)
        })?;
        context.add(case, verified, |stream, call| run(stream, call % SETS, &mut out))?;
    }
    Ok(())
}
