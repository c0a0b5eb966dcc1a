//! Trains networks.

use serde::{Deserialize, Serialize};

use super::cross_validation::mix;
use super::mlp::Mlp;
use super::table::Table;

/// Rule of an optimizer's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Adam by Kingma and Ba, with their constants.
    Adam,
    /// Plain gradient descent.
    Sgd,
}

/// Shape of a network, and the options of its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Number of hidden layers.
    pub layers: usize,
    /// Neurons per layer.
    pub neurons: usize,
    pub optimizer: Optimizer,
    /// Learning rate at the start; it falls to zero along half a cosine.
    pub rate: f32,
    /// Number of passes over all rows.
    pub epochs: usize,
    /// Rows per step.
    pub batch: usize,
}

/// State of an optimizer.
#[derive(Debug, Clone)]
pub struct Descent {
    optimizer: Optimizer,
    moments: Vec<[f32; 2]>,
    steps: i32,
}

impl Descent {
    /// Creates the state for a network.
    #[must_use]
    pub fn new(optimizer: Optimizer, network: &Mlp) -> Descent {
        Descent { optimizer, moments: vec![[0.0; 2]; network.parameters().count()], steps: 0 }
    }

    /// Takes one step against the gradients.
    pub fn step(&mut self, network: &mut Mlp, gradients: &Mlp, rate: f32) {
        const BETA: [f32; 2] = [0.9, 0.999];
        self.steps += 1;
        let correction = BETA.map(|beta| 1.0 - beta.powi(self.steps));
        let parameters = network.parameters_mut().zip(gradients.parameters());
        match self.optimizer {
            Optimizer::Sgd => parameters.for_each(|(p, g)| *p -= rate * g),
            Optimizer::Adam => {
                for ((p, g), [first, second]) in parameters.zip(&mut self.moments) {
                    *first += (g - *first) * (1.0 - BETA[0]);
                    *second += (g * g - *second) * (1.0 - BETA[1]);
                    *p -= rate * (*first / correction[0]) / ((*second / correction[1]).sqrt() + 1e-8);
                }
            }
        }
    }
}

/// A network with the scales of its inputs and its output.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Mean and standard deviation of each input.
    pub inputs: Vec<[f32; 2]>,
    /// Mean and standard deviation of the output.
    pub output: [f32; 2],
    /// The network over standardised values.
    pub mlp: Mlp,
}

impl Network {
    /// Learns `target` from the rows of a table by mean squared error. The same rows, options and seed give the
    /// same network.
    #[must_use]
    pub fn train(table: &Table, target: &[f64], training: &Training, seed: u64) -> Network {
        let inputs: Vec<[f32; 2]> =
            (0..table.columns()).map(|at| moments(table.column(at).map(f64::from))).collect();
        let output = moments(target.iter().copied());
        let rows: Vec<Vec<f32>> = (0..table.rows()).map(|at| standard(table.row(at), &inputs)).collect();
        let targets: Vec<f32> = target.iter().map(|&t| (t as f32 - output[0]) / output[1]).collect();
        let mut mlp = Mlp::random(table.columns(), training.layers, training.neurons, seed);
        let mut descent = Descent::new(training.optimizer, &mlp);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let batch = training.batch.max(1);
        let steps = (training.epochs * rows.len().div_ceil(batch)).max(1);
        let mut step = 0;
        for epoch in 0..training.epochs {
            order.sort_by_cached_key(|&row| mix(row as u64, mix(epoch as u64, seed)));
            for chunk in order.chunks(batch) {
                let samples: Vec<(&[f32], f32)> =
                    chunk.iter().map(|&row| (rows[row].as_slice(), targets[row])).collect();
                let (gradients, _) = mlp.gradients(&samples);
                let progress = step as f32 / steps as f32;
                let rate = training.rate * 0.5 * (1.0 + (std::f32::consts::PI * progress).cos());
                descent.step(&mut mlp, &gradients, rate);
                step += 1;
            }
        }
        Network { inputs, output, mlp }
    }

    /// Predicts one row; not-a-number for a row of another length.
    #[must_use]
    pub fn predict(&self, row: &[f32]) -> f64 {
        if row.len() != self.inputs.len() {
            return f64::NAN;
        }
        f64::from(self.mlp.predict(&standard(row, &self.inputs)) * self.output[1] + self.output[0])
    }
}

/// Mean and standard deviation; the latter is 1 if all values are equal.
fn moments(values: impl Iterator<Item = f64>) -> [f32; 2] {
    let values: Vec<f64> = values.collect();
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    [mean as f32, if deviation > 1e-6 { deviation as f32 } else { 1.0 }]
}

fn standard(row: &[f32], scales: &[[f32; 2]]) -> Vec<f32> {
    row.iter().zip(scales).map(|(value, [mean, deviation])| (value - mean) / deviation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_a_product_of_sizes_and_the_same_every_time() {
        let mut table = Table::new(3);
        let mut target = Vec::new();
        for at in 0..600u64 {
            let sizes = [1, 2, 3].map(|seed| (mix(at, seed) % 1000) as f32 / 100.0);
            table.push(|out| out.extend(sizes));
            target.push(f64::from(sizes[0] + sizes[1] * 0.5).max(f64::from(sizes[2])));
        }
        let training = Training {
            layers: 2,
            neurons: 32,
            optimizer: Optimizer::Adam,
            rate: 5e-3,
            epochs: 40,
            batch: 16,
        };
        let network = Network::train(&table, &target, &training, 3);
        let errors = target.iter().enumerate().map(|(row, t)| (network.predict(table.row(row)) - t).abs());
        let mean = errors.sum::<f64>() / 600.0;
        assert!(mean < 0.15, "mean error {mean}");
        assert_eq!(Network::train(&table, &target, &training, 3), network);
        assert!(network.predict(&[1.0]).is_nan());
    }

    #[test]
    fn no_rows_do_not_panic() {
        let training =
            Training { layers: 1, neurons: 4, optimizer: Optimizer::Sgd, rate: 0.1, epochs: 2, batch: 4 };
        let network = Network::train(&Table::new(2), &[], &training, 0);
        assert!(network.predict(&[0.0, 1.0]).is_finite());
    }
}
