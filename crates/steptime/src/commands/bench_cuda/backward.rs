//! Backward passes of embedding bags with their optimizer, index grouping included.

use steptime::cuda::embedding::{Grouping, Payload, RowOptimizer, RowSettings, Sizes, Tables};
use steptime::cuda::{Buffer, randomize};
use steptime::ops::embedding::Bounds;
use steptime::ops::embedding::backward::RowRule;

use super::Failure;
use super::batch::{SETS, Shape};
use super::context::{Case, Context};
use super::draw::Draw;

/// Small steps, so that the values stay what they are.
const RATE: f32 = 1e-6;

/// Runs all shapes with all optimizers.
pub fn run(context: &mut Context) -> Result<(), Failure> {
    for shape in Shape::measured() {
        let stream = context.stream.clone();
        let mut values = shape.values(&stream)?;
        let mut tables = shape.tables(&mut values)?;
        for &draw in shape.draws {
            case(context, &shape, &mut tables, draw)?;
        }
    }
    Ok(())
}

fn case(context: &mut Context, shape: &Shape, tables: &mut Tables<'_>, draw: Draw) -> Result<(), Failure> {
    let stream = context.stream.clone();
    let batches = shape.draw(&stream, draw)?;
    let lookups = batches.lookups()?;
    let columns = tables.columns();
    let mut gradient = Buffer::<f32>::uninit(context.device(), shape.bags * columns)?;
    randomize(&stream, &mut gradient.as_mut(), 7)?;
    let sizes = Sizes::of(&lookups[0], columns);
    for (name, rule) in [
        ("SGD", RowRule::SGD),
        ("row-wise Adagrad", RowRule::ROW_WISE_ADAGRAD),
        ("Adagrad", RowRule::Adagrad { eps: 1e-8 }),
        ("Adam", RowRule::ADAM),
        ("partial row-wise Adam", RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 }),
    ] {
        let payload = Payload::needed(tables, false);
        let mut grouping = Grouping::new(&stream, tables, sizes, shape.of_table(), payload)?;
        let settings = RowSettings::new(rule, RATE);
        let mut optimizer = RowOptimizer::new(&stream, tables, &grouping, sizes, settings)?;
        let mut geometry = grouping.geometry()?;
        geometry.extend(optimizer.geometry()?);
        // Rows and their state are read and written.
        let row = 4 * (shape.dim + rule.state_width(shape.dim));
        let case = Case {
            op: "backward",
            name: format!("{name}, {}", shape.name),
            shape: shape.text(),
            indices: draw.name(),
            distinct: batches.distinct(),
            bytes: (2 * row * batches.different + batches.bytes() + 4 * gradient.len()) as u64,
            geometry,
        };
        context.add(case, |stream, call| {
            let lookups = &lookups[call % SETS];
            grouping.run(stream, lookups)?;
            optimizer.step(stream, tables, lookups, &grouping, Bounds::Error, gradient.as_ref())
        })?;
        grouping.run(&stream, &lookups[0])?;
        grouping.check(&stream, tables, &lookups[0], Bounds::Error)?;
    }
    Ok(())
}
