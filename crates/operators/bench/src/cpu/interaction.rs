//! Dot interaction of stacked vectors.

use steptime_ops::Cpu;
use steptime_ops::interaction::{Features, FeaturesMut, Interaction, reference};
use steptime_tensor::Tensor;

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use crate::Error;
use crate::difference::largest_error;
use crate::dlrm::{self, BATCH};
use crate::random::values;
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "interaction",
    about: "Dot interaction, forward and backward",
    sizes: "B samples of F vectors of D floats",
    keys: &[("B", BATCH), ("F", 27), ("D", 128)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// Number of samples that are checked.
const CHECKED: usize = 32;

fn usual(context: &mut Context) -> Result<(), Error> {
    for model in dlrm::ALL {
        let sizes = Sizes::new([("B", BATCH), ("F", model.features()), ("D", model.dim)]);
        run(context, &format!("DLRM {}", model.name), &sizes)?;
    }
    Ok(())
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let [samples, features, dim] = ["B", "F", "D"].map(|key| sizes.get(key));
    let of = Interaction::new(features, dim, false)?;
    check_memory(&[&[samples, features, dim], &[samples, features, dim], &[samples, 2, of.columns()]])?;
    let shape = [samples, features, dim];
    let vectors = Tensor::from_vec(values(samples * features * dim, 1), &shape)?;
    let gradient = Tensor::from_vec(values(samples * of.columns(), 2), &[samples, of.columns()])?;
    let (mut out, mut gradients) =
        (Tensor::<f32>::zeros(&[samples, of.columns()])?, Tensor::<f32>::zeros(&shape)?);

    let forward = |cpu: &Cpu, out: &mut Tensor<f32>| {
        of.forward(cpu, &Features::Stacked(vectors.view()), out.make_mut())
    };
    let error = context.verify(|cpu| {
        forward(cpu, &mut out)?;
        let checked = samples.min(CHECKED);
        let expected = reference::forward(&of, checked, &wide(&vectors, checked * features * dim));
        Ok(largest_error(out.elements().iter().copied().zip(expected)))
    })?;
    let times = context.time(|cpu| timed(|| forward(cpu, &mut out)))?;
    // All products are written, their triangle is selected, and that is copied next to the dense vector.
    let (all, pairs) = (samples * features * features, samples * of.pairs());
    let work = Work {
        sequential: of.forward_bytes(samples),
        flops: of.forward_flops(samples),
        unfused: Some(of.forward_bytes(samples) + 4 * (all + 3 * pairs) as u64),
        ..Work::default()
    };
    context.add(Name { op: "interaction", pass: "forward", name, sizes }, work, times, error)?;

    let backward = |cpu: &Cpu, gradients: &mut Tensor<f32>| {
        let to = FeaturesMut::Stacked(gradients.make_mut());
        of.backward(cpu, &Features::Stacked(vectors.view()), &gradient.view(), to)
    };
    let error = context.verify(|cpu| {
        backward(cpu, &mut gradients)?;
        let checked = samples.min(CHECKED);
        let upstream = wide(&gradient, checked * of.columns());
        let expected =
            reference::backward(&of, checked, &wide(&vectors, checked * features * dim), &upstream);
        Ok(largest_error(gradients.elements().iter().copied().zip(expected)))
    })?;
    let times = context.time(|cpu| timed(|| backward(cpu, &mut gradients)))?;
    // The triangle is put into zeros, two products each read the vectors, and both are added.
    let unfused = 4 * (pairs + 3 * all + samples * features * dim * 5) as u64;
    let work = Work {
        sequential: of.backward_bytes(samples),
        flops: of.backward_flops(samples),
        unfused: Some(of.backward_bytes(samples) + unfused),
        ..Work::default()
    };
    context.add(Name { op: "interaction", pass: "gradients", name, sizes }, work, times, error)
}

/// The first elements, in double precision.
fn wide(tensor: &Tensor<f32>, count: usize) -> Vec<f64> {
    tensor.as_slice().unwrap_or(&[]).iter().take(count).map(|&value| f64::from(value)).collect()
}
