//! The plain backward pass: one lookup after the other, in double precision.

use std::collections::BTreeMap;

use half::{bf16, f16};

use super::super::{Bounds, Lookups, Pooling, Tables, WeightsMut};
use super::gradient::{check_size, count};
use super::winners::winners;
use super::{BackwardError, Decay, Gradient, RowOptimizer, RowRule};
use crate::{Cpu, Isa};

/// Computes the gradient of each row that is looked up, for each table: `sum over its lookups of factor x gradient`.
///
/// # Errors
///
/// Arguments that do not fit each other.
pub fn gradients_reference(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    gradient: &Gradient<'_>,
) -> Result<Vec<BTreeMap<usize, Vec<f64>>>, BackwardError> {
    check_size(tables, lookups, gradient)?;
    let cpu = Cpu::with_isa(Isa::Scalar, 1).unwrap_or_else(|_| unreachable!("one thread needs no others"));
    let won = winners(&cpu, tables, lookups, bounds);
    let one = |table: usize| {
        let (of, pooling) = (tables.table(table), tables.pooling(table));
        let (dim, start) = (of.dim(), lookups.table(table).start);
        let mut rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for bag in 0..lookups.bags() {
            for place in lookups.bag(table, bag) {
                let Some(row) =
                    usize::try_from(lookups.indices().at(place)).ok().filter(|&row| row < of.rows())
                else {
                    continue;
                };
                let received = match pooling {
                    Pooling::None => gradient.row(place, 0, dim),
                    _ => gradient.row(bag, tables.column(table), dim),
                };
                let mut factor = lookups.weights().map_or(1.0, |weights| f64::from(weights[place]));
                if pooling == Pooling::Mean {
                    factor /= count(tables, lookups, bounds, table, bag) as f64;
                }
                let sum = rows.entry(row).or_insert_with(|| vec![0.0; dim]);
                for (column, (sum, &gradient)) in sum.iter_mut().zip(received).enumerate() {
                    if pooling != Pooling::Max || won[table][bag * dim + column] as usize == place - start {
                        *sum += factor * f64::from(gradient);
                    }
                }
            }
        }
        rows
    };
    Ok((0..tables.len()).map(one).collect())
}

impl RowRule {
    /// Applies step `step`, from 1, to one row `p` with the gradient `g`, in plain loops.
    pub fn reference(self, step: u64, lr: f64, decay: Decay, p: &mut [f64], state: &mut [f64], g: &[f64]) {
        let dim = p.len();
        let (l2, keep) = match decay {
            Decay::None => (0.0, 1.0),
            Decay::Gradient(decay) => (f64::from(decay), 1.0),
            Decay::Weights(decay) => (0.0, 1.0 - lr * f64::from(decay)),
        };
        let g: Vec<f64> = g.iter().zip(&*p).map(|(g, p)| g + l2 * p).collect();
        let square = g.iter().map(|g| g * g).sum::<f64>() / dim as f64;
        let corrected = |beta: f32| 1.0 - f64::from(beta).powi(step as i32);
        for (at, (p, g)) in p.iter_mut().zip(&g).enumerate() {
            let change = match self {
                RowRule::Sgd { momentum: 0.0 } => *g,
                RowRule::Sgd { momentum } => {
                    state[at] = f64::from(momentum) * state[at] + g;
                    state[at]
                }
                RowRule::Adagrad { eps } => {
                    state[at] += g * g;
                    g / (state[at].sqrt() + f64::from(eps))
                }
                RowRule::RowWiseAdagrad { eps } => {
                    if at == 0 {
                        state[0] += square;
                    }
                    g / (state[0].sqrt() + f64::from(eps))
                }
                RowRule::Adam { beta1, beta2, eps } | RowRule::PartialRowWiseAdam { beta1, beta2, eps } => {
                    let (whole, keep2) = (matches!(self, RowRule::Adam { .. }), f64::from(beta2));
                    state[at] += (1.0 - f64::from(beta1)) * (g - state[at]);
                    let v = if whole { dim + at } else { dim };
                    if whole || at == 0 {
                        let square = if whole { g * g } else { square };
                        state[v] = keep2 * state[v] + (1.0 - keep2) * square;
                    }
                    let root = (state[v] / corrected(beta2)).sqrt();
                    state[at] / corrected(beta1) / (root + f64::from(eps))
                }
            };
            *p = keep * *p - lr * change;
        }
    }
}

impl RowOptimizer {
    /// Runs the backward pass in plain loops; 16-bit weights are rounded to the nearest.
    ///
    /// # Errors
    ///
    /// As for [`step`](RowOptimizer::step).
    pub fn step_reference(
        &mut self,
        tables: &mut Tables<'_>,
        lookups: &Lookups<'_>,
        bounds: Bounds,
        gradient: &Gradient<'_>,
    ) -> Result<(), BackwardError> {
        self.check(tables)?;
        let gradients = gradients_reference(tables, lookups, bounds, gradient)?;
        self.set_steps(self.steps() + 1);
        let (rule, (lr, decay, _), step) = (self.rule(), self.settings(), self.steps());
        for (table, (gradients, state)) in
            tables.all_values_mut().zip(gradients.iter().zip(self.states_mut()))
        {
            let dim = table.dim();
            let (mut weights, pitch) = table.weights_mut()?;
            for (&row, g) in gradients {
                let at = row * pitch..row * pitch + dim;
                let mut p: Vec<f64> = match &weights {
                    WeightsMut::F32(all) => all[at.clone()].iter().map(|&x| x.into()).collect(),
                    WeightsMut::F16(all) => all[at.clone()].iter().map(|&x| x.into()).collect(),
                    WeightsMut::Bf16(all) => all[at.clone()].iter().map(|&x| x.into()).collect(),
                };
                let kept = state.row_mut(row);
                let mut wide: Vec<f64> = kept.iter().map(|&x| x.into()).collect();
                rule.reference(step, lr.into(), decay, &mut p, &mut wide, g);
                kept.iter_mut().zip(wide).for_each(|(kept, wide)| *kept = wide as f32);
                match &mut weights {
                    WeightsMut::F32(all) => all[at].iter_mut().zip(p).for_each(|(to, p)| *to = p as f32),
                    WeightsMut::F16(all) => {
                        all[at].iter_mut().zip(p).for_each(|(to, p)| *to = f16::from_f64(p))
                    }
                    WeightsMut::Bf16(all) => {
                        all[at].iter_mut().zip(p).for_each(|(to, p)| *to = bf16::from_f64(p))
                    }
                }
            }
        }
        Ok(())
    }
}
