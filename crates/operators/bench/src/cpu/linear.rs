//! Linear layers with bias and activation: forward, and all gradients.

use steptime_ops::Cpu;
use steptime_ops::gemm::{Activation, GemmError, Gradients, MatMut, MatRef, linear, linear_backward};

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use crate::Error;
use crate::Init;
use crate::difference::largest_error;
use crate::dlrm::{self, BATCH};
use crate::random::{Random, values};
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "linear",
    about: "Linear layers with activation, forward and gradients",
    sizes: "B samples, K inputs, N outputs",
    keys: &[("B", BATCH), ("K", 512), ("N", 512)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// Number of elements of each result that are checked.
const SAMPLES: usize = 500;

/// The layers of DLRM's networks; repeated ones run once.
fn usual(context: &mut Context) -> Result<(), Error> {
    for model in dlrm::ALL {
        let mut layers = model.layers.to_vec();
        layers.dedup();
        for (inputs, outputs) in layers {
            let sizes = Sizes::new([("B", BATCH), ("K", inputs), ("N", outputs)]);
            run(context, &format!("DLRM {}", model.name), &sizes)?;
        }
    }
    Ok(())
}

/// A layer with all operands and results of its two directions.
struct Layer {
    batch: usize,
    inputs: usize,
    outputs: usize,
    activation: Activation,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    y: Vec<f32>,
    dy: Vec<f32>,
    dx: Vec<f32>,
    dw: Vec<f32>,
    db: Vec<f32>,
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let mut layer = Layer::new(sizes)?;
    let (x, weight, y) = (layer.x.len() as u64, layer.weight.len() as u64, layer.y.len() as u64);
    let flops = 2 * x * layer.outputs as u64;
    let bias = layer.outputs as u64;
    // The product, then the bias, then the activation, each over all of the output.
    let work = Work {
        sequential: 4 * (x + weight + bias + y),
        flops,
        unfused: Some(4 * (x + weight + bias + 5 * y)),
        ..Work::default()
    };
    let error = context.verify(|cpu| {
        layer.forward(cpu)?;
        Ok(layer.forward_error())
    })?;
    let times = context.time(|cpu| timed(|| layer.forward(cpu)))?;
    context.add(Name { op: "linear", pass: "forward", name, sizes }, work, times, error)?;
    layer.forward(&context.cpu)?;
    // The gradient before the activation is written once and read three times.
    let work = Work {
        sequential: 4 * (2 * (x + weight + y) + bias),
        flops: 2 * flops,
        unfused: Some(4 * (2 * (x + weight + y) + bias + 4 * y)),
        ..Work::default()
    };
    let error = context.verify(|cpu| {
        layer.backward(cpu)?;
        Ok(layer.backward_error())
    })?;
    let times = context.time(|cpu| timed(|| layer.backward(cpu)))?;
    context.add(Name { op: "linear", pass: "gradients", name, sizes }, work, times, error)
}

impl Layer {
    fn new(sizes: &Sizes) -> Result<Layer, Error> {
        let [batch, inputs, outputs] = ["B", "K", "N"].map(|key| sizes.get(key));
        let (x, weight, y) = ([batch, inputs], [outputs, inputs], [batch, outputs]);
        check_memory(&[&x, &x, &weight, &weight, &y, &y])?;
        let mut weights = values(outputs * inputs, 2);
        let scale = 1.0 / (inputs as f32).sqrt();
        weights.iter_mut().for_each(|weight| *weight *= scale);
        Ok(Layer {
            batch,
            inputs,
            outputs,
            activation: if outputs == 1 { Activation::Sigmoid } else { Activation::Relu },
            x: values(batch * inputs, 1),
            weight: weights,
            bias: values(outputs, 3),
            y: vec![0.0; batch * outputs],
            dy: values(batch * outputs, 4),
            dx: vec![0.0; batch * inputs],
            dw: vec![0.0; outputs * inputs],
            db: vec![0.0; outputs],
        })
    }

    fn forward(&mut self, cpu: &Cpu) -> Result<(), GemmError> {
        let x = MatRef::new(&self.x, self.batch, self.inputs)?;
        let weight = MatRef::new(&self.weight, self.outputs, self.inputs)?;
        let y = MatMut::new(&mut self.y, self.batch, self.outputs)?;
        linear(cpu, x, weight, Some(&self.bias), self.activation, y)
    }

    fn backward(&mut self, cpu: &Cpu) -> Result<(), GemmError> {
        let (batch, inputs, outputs) = (self.batch, self.inputs, self.outputs);
        let gradients = Gradients {
            x: Some(MatMut::new(&mut self.dx, batch, inputs)?),
            weight: Some(MatMut::new(&mut self.dw, outputs, inputs)?),
            bias: Some(&mut self.db),
        };
        linear_backward(
            cpu,
            MatRef::new(&self.dy, batch, outputs)?,
            MatRef::new(&self.y, batch, outputs)?,
            MatRef::new(&self.x, batch, inputs)?,
            MatRef::new(&self.weight, outputs, inputs)?,
            self.activation,
            gradients,
        )
    }

    fn forward_error(&self) -> f64 {
        let mut random = Random::new(5);
        largest_error((0..SAMPLES).map(|_| {
            let (row, out) =
                (random.index(Init::Uniform, self.batch), random.index(Init::Uniform, self.outputs));
            let terms = (0..self.inputs).map(|at| {
                f64::from(self.x[row * self.inputs + at]) * f64::from(self.weight[out * self.inputs + at])
            });
            let sum = terms.sum::<f64>() + f64::from(self.bias[out]);
            (self.y[row * self.outputs + out], f64::from(self.activation.value(sum as f32)))
        }))
    }

    /// The gradient before the activation.
    fn dz(&self, row: usize, out: usize) -> f64 {
        let at = row * self.outputs + out;
        f64::from(self.dy[at]) * f64::from(self.activation.slope(self.y[at]))
    }

    fn backward_error(&self) -> f64 {
        let mut random = Random::new(6);
        largest_error((0..SAMPLES).flat_map(|_| {
            let [row, out, at] =
                [self.batch, self.outputs, self.inputs].map(|size| random.index(Init::Uniform, size));
            let dx: f64 = (0..self.outputs)
                .map(|out| self.dz(row, out) * f64::from(self.weight[out * self.inputs + at]))
                .sum();
            let dw: f64 = (0..self.batch)
                .map(|row| self.dz(row, out) * f64::from(self.x[row * self.inputs + at]))
                .sum();
            let db: f64 = (0..self.batch).map(|row| self.dz(row, out)).sum();
            [(self.dx[row * self.inputs + at], dx), (self.dw[out * self.inputs + at], dw), (self.db[out], db)]
        }))
    }
}
