//! Backward passes of embedding bags with their optimizer, index grouping included.

use steptime_cuda::embedding::{Grouping, Payload, RowOptimizer, RowSettings, Sizes, Tables};
use steptime_cuda::{Buffer, Stream, randomize};
use steptime_ops::embedding::Bounds;
use steptime_ops::embedding::backward::RowRule;

use super::batch::{Batches, KEYS, SETS, Shape, put_row, read_row};
use super::context::{Case, Context};
use super::draw::Draw;
use super::excerpt::Excerpt;
use super::{Benchmark, TOLERANCE};
use crate::Error;

/// Learning rate of timed steps: so small that the values barely change.
const RATE: f32 = 1e-6;

/// Learning rate of the steps that are compared with their reference.
const VERIFIED_RATE: f32 = 0.01;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "backward",
    about: "Their backward passes, with each optimizer",
    sizes: "as bag, once for each optimizer",
    keys: KEYS,
    run: |context, sizes| {
        Shape::typed(context, sizes, |dim| RowRule::ADAM.state_width(dim))?.each_draw(context, case)
    },
    usual,
};

/// Runs all shapes with all optimizers.
fn usual(context: &mut Context) -> Result<(), Error> {
    Shape::measured().iter().try_for_each(|shape| shape.each_draw(context, case))
}

fn case(context: &mut Context, shape: &Shape, tables: &mut Tables<'_>, draw: Draw) -> Result<(), Error> {
    let stream = context.stream.clone();
    let batches = shape.draw(&stream, draw)?;
    let lookups = batches.lookups()?;
    let columns = tables.columns();
    let mut gradient = Buffer::<f32>::uninit(context.device(), shape.bags * columns)?;
    randomize(&stream, &mut gradient.as_mut(), 7)?;
    let sizes = Sizes::from_lookups(&lookups[0], columns);
    for (name, rule) in [
        ("SGD", RowRule::SGD),
        ("row-wise Adagrad", RowRule::ROW_WISE_ADAGRAD),
        ("Adagrad", RowRule::Adagrad { eps: 1e-8 }),
        ("Adam", RowRule::ADAM),
        ("partial row-wise Adam", RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 }),
    ] {
        let verified =
            context.verify(TOLERANCE, |stream| verify(stream, (shape, &batches), tables, &gradient, rule))?;
        let payload = Payload::needed(tables, false);
        let mut grouping = Grouping::new(&stream, tables, sizes, shape.table_lookups(), payload)?;
        let settings = RowSettings::new(rule, RATE);
        let mut optimizer = RowOptimizer::new(&stream, tables, &grouping, sizes, settings)?;
        let mut geometry = grouping.geometry()?;
        geometry.extend(optimizer.geometry()?);
        // Rows and their state are read and written.
        let row = 4 * (shape.dim + rule.state_width(shape.dim));
        let case = Case {
            op: "backward",
            name: [name, shape.name].join(", ").trim_end_matches(", ").to_owned(),
            shape: shape.text(),
            indices: draw.name(),
            distinct: batches.distinct(),
            bytes: (2 * row * batches.different + batches.bytes() + 4 * gradient.len()) as u64,
            flops: 0,
            geometry,
        };
        context.add(case, verified, |stream, call| {
            let lookups = &lookups[call % SETS];
            grouping.run(stream, lookups)?;
            optimizer.step(stream, tables, lookups, &grouping, Bounds::Error, gradient.as_ref())
        })?;
        grouping.run(&stream, &lookups[0])?;
        grouping.check(&stream, tables, &lookups[0], Bounds::Error)?;
    }
    Ok(())
}

/// Checks the first step of a rule, with a learning rate at which its effect shows.
fn verify(
    stream: &Stream,
    (shape, batches): (&Shape, &Batches),
    tables: &mut Tables<'_>,
    gradient: &Buffer<f32>,
    rule: RowRule,
) -> Result<f64, Error> {
    let (lookups, columns) = (batches.lookups()?[0], tables.columns());
    let sizes = Sizes::from_lookups(&lookups, columns);
    let payload = Payload::needed(tables, false);
    let mut grouping = Grouping::new(stream, tables, sizes, shape.table_lookups(), payload)?;
    let settings = RowSettings::new(rule, VERIFIED_RATE);
    let mut optimizer = RowOptimizer::new(stream, tables, &grouping, sizes, settings)?;
    let excerpt = Excerpt::new(shape, &batches.first)?;
    excerpt.put(|table, row, bytes| put_row(stream, tables, table, row, bytes))?;
    grouping.run(stream, &lookups)?;
    optimizer.step(stream, tables, &lookups, &grouping, Bounds::Error, gradient.as_ref())?;
    grouping.check(stream, tables, &lookups, Bounds::Error)?;
    let gradient = gradient.to_host(stream)?;
    excerpt.stepped_error((rule, VERIFIED_RATE), &gradient, |table, row| read_row(stream, tables, table, row))
}
