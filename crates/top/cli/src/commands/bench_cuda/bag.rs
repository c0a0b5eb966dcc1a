//! Embedding bags over many tables.

use steptime::cuda::Buffer;
use steptime::cuda::embedding::{Forward, Sizes, Tables};
use steptime::ops::embedding::{Bounds, Element};

use super::batch::{KEYS, SETS, Shape};
use super::context::{Case, Context};
use super::draw::Draw;
use super::{Benchmark, Failure};

pub const BENCHMARK: Benchmark = Benchmark {
    keys: KEYS,
    run: |context, sizes| all_draws(context, &Shape::typed(context, sizes, |_| 0)?),
    usual,
};

/// Runs the usual shapes, narrow rows, and rows of every element.
fn usual(context: &mut Context) -> Result<(), Failure> {
    let mut shapes = Shape::measured();
    for (rows, dim) in [(16_000_000, 8), (8_000_000, 16), (4_000_000, 32)] {
        shapes.push(Shape::new("narrow", [4, rows, dim], 32, 32_768, Element::F32));
    }
    let others = Element::ALL.into_iter().filter(|&element| element != Element::F32);
    shapes.extend(others.map(|element| Shape::new("elements", [16, 1_000_000, 128], 32, 8192, element)));
    shapes.iter().try_for_each(|shape| all_draws(context, shape))
}

fn all_draws(context: &mut Context, shape: &Shape) -> Result<(), Failure> {
    let mut values = shape.values(&context.stream)?;
    let tables = shape.tables(&mut values)?;
    context.draws(shape.draws).into_iter().try_for_each(|draw| case(context, shape, &tables, draw))
}

fn case(context: &mut Context, shape: &Shape, tables: &Tables<'_>, draw: Draw) -> Result<(), Failure> {
    let stream = context.stream.clone();
    let batches = shape.draw(&stream, draw)?;
    let lookups = batches.lookups()?;
    let columns = tables.columns();
    let mut out = Buffer::<f32>::uninit(context.device(), shape.bags * columns)?;
    let mut forward = Forward::new(context.device(), tables, Sizes::of(&lookups[0], columns), Bounds::Error)?;
    let row = shape.element.row_bytes(shape.dim);
    let case = Case {
        op: "bag",
        name: shape.name.into(),
        shape: shape.text(),
        indices: draw.name(),
        distinct: batches.distinct(),
        bytes: (row * batches.different + batches.bytes() + 4 * out.len()) as u64,
        flops: 0,
        geometry: vec![forward.geometry()?],
    };
    context
        .add(case, |stream, call| forward.run(stream, tables, &lookups[call % SETS], &mut out.as_mut()))?;
    forward.check(&stream, tables, &lookups[0])?;
    Ok(())
}
