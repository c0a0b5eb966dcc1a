//! A small network: dense layers with ReLU between them.

use super::cross_validation::mix;

/// A dense layer. Weights are stored input by input, so that inner loops run over outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// `weights[input * outputs + output]`.
    pub weights: Vec<f32>,
    /// One for each output.
    pub bias: Vec<f32>,
}

/// A network with one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    /// Its layers, the last with one output and without ReLU.
    pub layers: Vec<Dense>,
}

impl Dense {
    /// Creates weights and biases uniform within `1 / sqrt(inputs)`, from a seed.
    #[must_use]
    pub fn random(inputs: usize, outputs: usize, seed: u64) -> Dense {
        let bound = 1.0 / (inputs.max(1) as f32).sqrt();
        let mut at = 0u64;
        let mut next = || {
            at += 1;
            ((mix(at, seed) >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * bound
        };
        let weights = (0..inputs * outputs).map(|_| next()).collect();
        Dense { inputs, outputs, weights, bias: (0..outputs).map(|_| next()).collect() }
    }

    /// Computes `out = x W + b`.
    fn forward(&self, x: &[f32], out: &mut [f32]) {
        out.copy_from_slice(&self.bias);
        for (&value, row) in x.iter().zip(self.weights.chunks_exact(self.outputs)) {
            if value != 0.0 {
                out.iter_mut().zip(row).for_each(|(o, &w)| *o += value * w);
            }
        }
    }

    /// Adds this sample's gradients to `into` and writes the gradient of the inputs.
    fn backward(&self, x: &[f32], up: &[f32], into: &mut Dense, down: &mut [f32]) {
        into.bias.iter_mut().zip(up).for_each(|(b, &u)| *b += u);
        let rows = self.weights.chunks_exact(self.outputs).zip(into.weights.chunks_exact_mut(self.outputs));
        for ((&value, down), (row, gradient)) in x.iter().zip(down).zip(rows) {
            // A ReLU without output has no gradient either.
            if value != 0.0 {
                gradient.iter_mut().zip(up).for_each(|(g, &u)| *g += value * u);
            }
            *down = dot(row, up);
        }
    }
}

/// Computes a dot product in eight partial sums, which the compiler turns into vectors.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

impl Mlp {
    /// Creates `hidden` layers of `width` neurons with random weights.
    #[must_use]
    pub fn random(inputs: usize, hidden: usize, width: usize, seed: u64) -> Mlp {
        let mut sizes = vec![inputs];
        sizes.extend(std::iter::repeat_n(width, hidden));
        sizes.push(1);
        let layers = sizes.windows(2).zip(0..);
        Mlp { layers: layers.map(|(pair, at)| Dense::random(pair[0], pair[1], mix(at, seed))).collect() }
    }

    /// Returns a network of the same shape with all weights and biases zero.
    #[must_use]
    pub fn zeros_like(&self) -> Mlp {
        let zero = |layer: &Dense| Dense {
            weights: vec![0.0; layer.weights.len()],
            bias: vec![0.0; layer.bias.len()],
            ..*layer
        };
        Mlp { layers: self.layers.iter().map(zero).collect() }
    }

    /// Returns the number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.inputs)
    }

    /// Returns the output for one row.
    #[must_use]
    pub fn predict(&self, x: &[f32]) -> f32 {
        self.activations(x).last().and_then(|out| out.first()).copied().unwrap_or(0.0)
    }

    /// Returns the outputs of each layer.
    fn activations(&self, x: &[f32]) -> Vec<Vec<f32>> {
        let mut all: Vec<Vec<f32>> = Vec::with_capacity(self.layers.len());
        for (at, layer) in self.layers.iter().enumerate() {
            let mut out = vec![0.0; layer.outputs];
            layer.forward(all.last().map_or(x, |below| below), &mut out);
            if at + 1 < self.layers.len() {
                out.iter_mut().for_each(|value| *value = value.max(0.0));
            }
            all.push(out);
        }
        all
    }

    /// Returns the gradients of the mean squared error over a batch, and that error.
    #[must_use]
    pub fn gradients(&self, batch: &[(&[f32], f32)]) -> (Mlp, f32) {
        let mut into = self.zeros_like();
        let mut loss = 0.0;
        let scale = 2.0 / batch.len().max(1) as f32;
        for &(x, target) in batch {
            let outs = self.activations(x);
            let error = outs.last().and_then(|out| out.first()).copied().unwrap_or(0.0) - target;
            loss += error * error;
            let mut up = vec![error * scale];
            for at in (0..self.layers.len()).rev() {
                let below: &[f32] = if at == 0 { x } else { &outs[at - 1] };
                let mut down = vec![0.0; self.layers[at].inputs];
                self.layers[at].backward(below, &up, &mut into.layers[at], &mut down);
                if at > 0 {
                    down.iter_mut().zip(below).filter(|(_, out)| **out <= 0.0).for_each(|(d, _)| *d = 0.0);
                }
                up = down;
            }
        }
        (into, loss / batch.len().max(1) as f32)
    }

    /// Returns all parameters, layer by layer.
    pub fn parameters(&self) -> impl Iterator<Item = f32> {
        self.layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias)).copied()
    }

    /// Returns all parameters, mutable.
    pub fn parameters_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        self.layers.iter_mut().flat_map(|layer| layer.weights.iter_mut().chain(&mut layer.bias))
    }
}
