//! Embedding bags over many tables.

use rayon::prelude::*;
use steptime::cuda::embedding::{Forward, Ints, Lookups, Sizes, Table, Tables};
use steptime::cuda::{Buffer, randomize};
use steptime::ops::embedding::{Bounds, Element, Pooling};

use super::Failure;
use super::context::{Case, Context};
use super::draw::{Draw, distinct};
use crate::commands::bench::dlrm::CRITEO;
use crate::commands::bench::random::Random;

/// Sets of indices, used in turn.
const SETS: usize = 3;

/// Tables with a batch.
struct Shape {
    name: &'static str,
    rows: Vec<usize>,
    dim: usize,
    bags: usize,
    lookups: usize,
    draws: &'static [Draw],
}

const UNIFORM: &[Draw] = &[Draw::Uniform];

/// Those at which other libraries were measured, then narrow rows.
fn shapes() -> Vec<Shape> {
    let shape = |name, tables, rows, dim, lookups, bags| Shape {
        name,
        rows: vec![rows; tables],
        dim,
        bags,
        lookups,
        draws: UNIFORM,
    };
    vec![
        shape("DLRM default", 8, 1_000_000, 64, 10, 2048),
        shape("DLRM DDP", 8, 80_000, 128, 20, 2048),
        Shape { rows: CRITEO.to_vec(), ..shape("Criteo Kaggle", 26, 0, 128, 1, 8192) },
        Shape {
            draws: &[Draw::Uniform, Draw::Zipf(1.05), Draw::Zipf(1.2)],
            ..shape("large", 16, 1_000_000, 128, 32, 8192)
        },
        shape("small", 4, 1000, 32, 5, 512),
        shape("wide", 4, 1_000_000, 512, 10, 8192),
        shape("narrow", 4, 16_000_000, 8, 32, 32_768),
        shape("narrow", 4, 8_000_000, 16, 32, 32_768),
        shape("narrow", 4, 4_000_000, 32, 32, 32_768),
    ]
}

/// Runs all shapes.
pub fn run(context: &mut Context) -> Result<(), Failure> {
    for shape in shapes() {
        let stream = context.stream.clone();
        let mut buffers = Vec::new();
        for (at, rows) in shape.rows.iter().enumerate() {
            let mut values = Buffer::<f32>::uninit(context.device(), rows * shape.dim)?;
            randomize(&stream, &mut values.as_mut(), at as u64)?;
            buffers.push(values);
        }
        let tables = buffers.iter().zip(&shape.rows).map(|(values, &rows)| {
            Table::borrow("table", values.as_ref().cast(), [rows, shape.dim], Element::F32, 4 * shape.dim)
        });
        let tables = Tables::new(tables.collect::<Result<_, _>>()?, Pooling::Sum);
        for &draw in shape.draws {
            case(context, &shape, &tables, draw)?;
        }
    }
    Ok(())
}

fn case(context: &mut Context, shape: &Shape, tables: &Tables<'_>, draw: Draw) -> Result<(), Failure> {
    let stream = context.stream.clone();
    let of_table = shape.bags * shape.lookups;
    let total = of_table * shape.rows.len();
    // One table after the other, each from its own seed.
    let set = |set: usize| -> Vec<Vec<i64>> {
        let one = |(at, &rows): (usize, &usize)| {
            let mut random = Random::new((1000 * set + at) as u64);
            (0..of_table).map(|_| draw.index(&mut random, rows)).collect()
        };
        shape.rows.par_iter().enumerate().map(one).collect()
    };
    let drawn: Vec<_> = (0..SETS).map(set).collect();
    let different: usize =
        drawn[0].iter().zip(&shape.rows).map(|(indices, &rows)| distinct(indices, rows)).sum();
    let upload = |set: &Vec<Vec<i64>>| Buffer::from_host(&stream, &set.concat());
    let indices = drawn.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    let offsets: Vec<i64> =
        (0..=shape.rows.len() * shape.bags).map(|bag| (bag * shape.lookups) as i64).collect();
    let offsets = Buffer::from_host(&stream, &offsets)?;
    let lookups = indices
        .iter()
        .map(|set| Lookups::new(shape.bags, Ints::I64(set.as_ref()), Ints::I64(offsets.as_ref())))
        .collect::<Result<Vec<_>, _>>()?;
    let columns = tables.columns();
    let mut out = Buffer::<f32>::uninit(context.device(), shape.bags * columns)?;
    let mut forward = Forward::new(context.device(), tables, Sizes::of(&lookups[0], columns), Bounds::Error)?;
    let rows = &shape.rows;
    let sizes = if rows.iter().all(|one| one == &rows[0]) { rows[0].to_string() } else { "mixed".into() };
    let case = Case {
        op: "bag",
        name: shape.name.into(),
        shape: format!("T={},E={sizes},D={},L={},B={}", rows.len(), shape.dim, shape.lookups, shape.bags),
        indices: draw.name(),
        distinct: different as f64 / total as f64,
        bytes: (4 * shape.dim * different + 8 * (total + offsets.len()) + 4 * out.len()) as u64,
        geometry: forward.geometry()?,
    };
    context
        .add(case, |stream, call| forward.run(stream, tables, &lookups[call % SETS], &mut out.as_mut()))?;
    forward.check(&stream, tables, &lookups[0])?;
    Ok(())
}
