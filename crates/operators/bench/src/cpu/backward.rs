//! The backward pass of embedding bags, fused with each optimizer.

use std::collections::BTreeMap;

use steptime_ops::Cpu;
use steptime_ops::embedding::backward::{Decay, Gradient, RowOptimizer, RowRule, gradients_reference};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Pooling, Tables, Weights};

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use super::lookups::{Batch, Shape};
use crate::Error;
use crate::difference::largest_error;
use crate::dlrm::{self, BATCH};
use crate::random::values;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "backward",
    about: "The backward pass of bags, fused with each optimizer",
    sizes: "as bag, once for each optimizer",
    keys: &[("T", 8), ("E", 100_000), ("D", 64), ("B", BATCH), ("L", 10)],
    run: |context, sizes| case(context, "", &Shape::read(sizes)?),
    usual,
};

/// Most rows of a table: keeps all tables of a model below 1 GiB, and below 3 GiB with Adam's state.
const MOST_ROWS: usize = 150_000;
const LEARNING_RATE: f32 = 0.01;
const RULES: [RowRule; 5] = [
    RowRule::SGD,
    RowRule::Adagrad { eps: 1e-8 },
    RowRule::ROW_WISE_ADAGRAD,
    RowRule::ADAM,
    RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 },
];

fn usual(context: &mut Context) -> Result<(), Error> {
    for model in dlrm::ALL {
        let (rows, name) = (model.rows_up_to(MOST_ROWS), model.name_up_to(MOST_ROWS));
        let shape = Shape { rows, dim: model.dim, bags: BATCH, lookups: model.lookups };
        case(context, &format!("DLRM {name}"), &shape)?;
    }
    Ok(())
}

fn case(context: &mut Context, name: &str, shape: &Shape) -> Result<(), Error> {
    let most = RULES.iter().map(|rule| rule.state_width(shape.dim)).max().unwrap_or(0);
    let mut tables = Tables::new(shape.tables(most)?, Pooling::Sum);
    let gradient = values(shape.bags * tables.columns(), 5);
    for rule in RULES {
        one(context, name, shape, &mut tables, &gradient, rule)?;
    }
    Ok(())
}

fn one(
    context: &mut Context,
    name: &str,
    shape: &Shape,
    tables: &mut Tables<'_>,
    gradient: &[f32],
    rule: RowRule,
) -> Result<(), Error> {
    let mut batch = Batch::new(context.init, shape);
    let stride = tables.columns();
    let mut optimizer = RowOptimizer::new(rule, LEARNING_RATE, tables)?;
    // The system maps the pages of the state at the first write: here, not in a timed call.
    for (state, &rows) in optimizer.states_mut().iter_mut().zip(&shape.rows) {
        (0..rows).for_each(|row| state.row_mut(row).fill(0.0));
    }
    let mut step = Step { optimizer, grouping: Grouping::new(), gradient: Gradient::new(gradient, stride) };
    let (distinct, dim, count) = (batch.distinct(shape), shape.dim as u64, shape.count() as u64);
    let row = 4 * (dim + rule.state_width(shape.dim) as u64);
    let outputs = 4 * gradient.len() as u64;
    let work = Work {
        random: 2 * distinct * row,
        row_bytes: row as usize,
        table_bytes: shape.rows.iter().sum::<usize>() * row as usize,
        sequential: batch.bytes() + outputs,
        flops: count * dim + distinct * dim * arithmetic(rule),
        // The gradient of each lookup is written and read, then summed to one a row, which the optimizer reads.
        unfused: Some(2 * distinct * row + batch.bytes() + outputs + 4 * dim * 2 * (count + distinct)),
    };
    let error = context.verify(|cpu| step.verify(cpu, tables, &batch))?;
    let times = context.time(|cpu| {
        batch.draw(shape);
        timed(|| step.run(cpu, tables, &batch))
    })?;
    let sizes = shape.sizes();
    context.add(Name { op: "backward", pass: rule.name(), name, sizes: &sizes }, work, times, error)
}

/// Operations on each element of a row, without the sum of its gradient.
fn arithmetic(rule: RowRule) -> u64 {
    match rule {
        RowRule::Sgd { .. } => 2,
        RowRule::Adagrad { .. } => 7,
        RowRule::RowWiseAdagrad { .. } => 4,
        RowRule::Adam { .. } => 12,
        RowRule::PartialRowWiseAdam { .. } => 7,
    }
}

struct Step<'a> {
    optimizer: RowOptimizer,
    grouping: Grouping,
    gradient: Gradient<'a>,
}

impl Step<'_> {
    fn run(&mut self, cpu: &Cpu, tables: &mut Tables<'_>, batch: &Batch) -> Result<(), Error> {
        let lookups = batch.lookups()?;
        self.grouping.group(cpu, tables, &lookups, Bounds::Error)?;
        self.optimizer.step(cpu, tables, &lookups, &self.grouping, Bounds::Error, &self.gradient)?;
        Ok(())
    }

    /// Compares the first step of each looked-up row with the same step in double precision.
    fn verify(&mut self, cpu: &Cpu, tables: &mut Tables<'_>, batch: &Batch) -> Result<f64, Error> {
        let sums = gradients_reference(tables, &batch.lookups()?, Bounds::Error, &self.gradient)?;
        let (rule, lr) = (self.optimizer.rule(), f64::from(LEARNING_RATE));
        let mut expected: Vec<BTreeMap<usize, Vec<f64>>> = Vec::with_capacity(sums.len());
        for (table, sums) in sums.iter().enumerate() {
            let step = |(&row, sum): (&usize, &Vec<f64>)| {
                let mut weights: Vec<f64> = weights(tables, table, row).map(f64::from).collect();
                let mut state = vec![0.0; rule.state_width(weights.len())];
                rule.reference(1, lr, Decay::None, &mut weights, &mut state, sum);
                (row, weights)
            };
            expected.push(sums.iter().map(step).collect());
        }
        self.run(cpu, tables, batch)?;
        let rows = expected.iter().enumerate().flat_map(|(table, rows)| {
            let tables = &*tables;
            rows.iter().flat_map(move |(&row, new)| weights(tables, table, row).zip(new.iter().copied()))
        });
        Ok(largest_error(rows))
    }
}

/// A row of a table of floats.
fn weights<'t>(tables: &'t Tables<'_>, table: usize, row: usize) -> impl Iterator<Item = f32> + 't {
    let table = tables.table(table);
    let values = match table.weights() {
        Some(Weights::F32(values)) => &values[row * table.pitch() / size_of::<f32>()..][..table.dim()],
        _ => &[],
    };
    values.iter().copied()
}
