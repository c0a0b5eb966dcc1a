//! Embedding bags over many tables.

use steptime::cuda::Buffer;
use steptime::cuda::embedding::{Forward, Sizes, Tables};
use steptime::ops::embedding::{Bounds, Element};

use super::Failure;
use super::batch::{SETS, Shape};
use super::context::{Case, Context};
use super::draw::Draw;

/// Runs the usual shapes, narrow rows, and rows of every element.
pub fn run(context: &mut Context) -> Result<(), Failure> {
    let mut shapes = Shape::measured();
    for (rows, dim) in [(16_000_000, 8), (8_000_000, 16), (4_000_000, 32)] {
        shapes.push(Shape::new("narrow", [4, rows, dim], 32, 32_768, Element::F32));
    }
    let others = Element::ALL.into_iter().filter(|&element| element != Element::F32);
    shapes.extend(others.map(|element| Shape::new("elements", [16, 1_000_000, 128], 32, 8192, element)));
    for shape in shapes {
        let stream = context.stream.clone();
        let mut values = shape.values(&stream)?;
        let tables = shape.tables(&mut values)?;
        for &draw in shape.draws {
            case(context, &shape, &tables, draw)?;
        }
    }
    Ok(())
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
        geometry: vec![forward.geometry()?],
    };
    context
        .add(case, |stream, call| forward.run(stream, tables, &lookups[call % SETS], &mut out.as_mut()))?;
    forward.check(&stream, tables, &lookups[0])?;
    Ok(())
}
