//! Embedding bags over many tables.

use steptime_cuda::Buffer;
use steptime_cuda::embedding::{Forward, Sizes, Tables};
use steptime_ops::embedding::{Bounds, Element};

use super::batch::{KEYS, SETS, Shape, put_row, read};
use super::context::{Case, Context};
use super::draw::Draw;
use super::excerpt::Excerpt;
use super::{Benchmark, TOLERANCE};
use crate::Error;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "bag",
    about: "Embedding bags over many tables",
    sizes: "T tables of E rows and D columns, B bags of L lookups",
    keys: KEYS,
    run: |context, sizes| Shape::typed(context, sizes, |_| 0)?.each_draw(context, case),
    usual,
};

/// Runs the default shapes, narrow rows, and rows of every element type.
fn usual(context: &mut Context) -> Result<(), Error> {
    let mut shapes = Shape::measured();
    for (rows, dim) in [(16_000_000, 8), (8_000_000, 16), (4_000_000, 32)] {
        shapes.push(Shape::new("narrow", [4, rows, dim], 32, 32_768, Element::F32));
    }
    let others = Element::ALL.into_iter().filter(|&element| element != Element::F32);
    shapes.extend(others.map(|element| Shape::new("elements", [16, 1_000_000, 128], 32, 8192, element)));
    shapes.iter().try_for_each(|shape| shape.each_draw(context, case))
}

fn case(context: &mut Context, shape: &Shape, tables: &mut Tables<'_>, draw: Draw) -> Result<(), Error> {
    let stream = context.stream.clone();
    let batches = shape.draw(&stream, draw)?;
    let lookups = batches.lookups()?;
    let columns = tables.columns();
    let mut out = Buffer::<f32>::uninit(context.device(), shape.bags * columns)?;
    let mut forward =
        Forward::new(context.device(), tables, Sizes::from_lookups(&lookups[0], columns), Bounds::Error)?;
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
    let verified = context.verify(TOLERANCE, |stream| {
        let excerpt = Excerpt::new(shape, &batches.first)?;
        excerpt.put(|table, row, bytes| put_row(stream, tables, table, row, bytes))?;
        forward.run(stream, tables, &lookups[0], &mut out.as_mut())?;
        forward.check(stream, tables, &lookups[0])?;
        excerpt.pooled_error(|bag| Ok(read(stream, out.as_ref().slice(bag * columns..(bag + 1) * columns))?))
    })?;
    context.add(case, verified, |stream, call| {
        forward.run(stream, tables, &lookups[call % SETS], &mut out.as_mut())
    })?;
    forward.check(&stream, tables, &lookups[0])?;
    Ok(())
}
