//! Dot interaction of stacked vectors.

use steptime_cuda::interaction::{Features, FeaturesMut, Interaction, Strides};
use steptime_cuda::{Buffer, Stream, randomize};
use steptime_ops::interaction::{Interaction as Shape, reference};

use super::batch::read;
use super::context::{Case, Context};
use super::{Benchmark, TOLERANCE};
use crate::Error;
use crate::difference::largest_error;
use crate::dlrm::{self, BATCH};
use crate::sizes::Sizes;

/// Number of vector sets, used in turn.
const SETS: usize = 4;

/// Number of samples that are checked.
const CHECKED: usize = 32;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "interaction",
    about: "Dot interaction, forward and backward",
    sizes: "B samples of F vectors of D floats",
    keys: &[("B", BATCH), ("F", 27), ("D", 128)],
    run,
    usual,
};

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [samples, features, dim] = ["B", "F", "D"].map(|key| sizes.get(key));
    context.check_memory(&[&[SETS + 1, samples, features, dim], &[samples, features, features]])?;
    case(context, "", [samples, features, dim])
}

/// Runs the shapes of all DLRMs.
fn usual(context: &mut Context) -> Result<(), Error> {
    dlrm::ALL.iter().try_for_each(|model| {
        case(context, &format!("DLRM {}", model.name), [BATCH, model.features(), model.dim])
    })
}

fn random(stream: &Stream, floats: usize, seed: u64) -> Result<Buffer<f32>, Error> {
    let mut values = Buffer::uninit(stream.device(), floats)?;
    randomize(stream, &mut values.as_mut(), seed)?;
    Ok(values)
}

fn case(context: &mut Context, name: &str, sizes: [usize; 3]) -> Result<(), Error> {
    let [samples, features, dim] = sizes;
    let stream = context.stream.clone();
    let shape = Shape::new(features, dim, false)?;
    let op = Interaction::new(context.device(), shape, dim.is_multiple_of(4))?;
    let (row, columns) = (features * dim, shape.columns());
    let sets =
        (0..SETS).map(|seed| random(&stream, samples * row, seed as u64)).collect::<Result<Vec<_>, _>>()?;
    let gradient = random(&stream, samples * columns, 9)?;
    let mut out = Buffer::<f32>::uninit(context.device(), samples * columns)?;
    let mut dense = Buffer::<f32>::uninit(context.device(), samples * dim)?;
    let mut others = Buffer::<f32>::uninit(context.device(), samples * row)?;
    let strides = Strides { sample: row, vector: dim };
    let [forward, backward] = op.geometry(samples)?;
    let described = |op, bytes: u64, geometry| Case {
        op,
        name: name.to_owned(),
        shape: format!("B={samples},F={features},D={dim}"),
        indices: String::new(),
        distinct: 1.0,
        bytes,
        flops: 0,
        geometry: vec![geometry],
    };
    let vectors = |call: usize| {
        let all = sets[call % SETS].as_ref();
        Features::split(all, row, all.slice(dim..all.len()), strides)
    };
    let checked = samples.min(CHECKED);
    let wide = |stream: &Stream, from: &Buffer<f32>, floats: usize| -> Result<Vec<f64>, Error> {
        Ok(read(stream, from.as_ref().slice(0..floats))?.into_iter().map(f64::from).collect())
    };
    let verified = context.verify(TOLERANCE, |stream| {
        op.forward(stream, samples, &vectors(0), &mut out.as_mut(), columns)?;
        let found = read(stream, out.as_ref().slice(0..checked * columns))?;
        let expected = reference::forward(&shape, checked, &wide(stream, &sets[0], checked * row)?);
        Ok(largest_error(found.into_iter().zip(expected)))
    })?;
    let described_forward = described("interaction", shape.forward_bytes(samples), forward);
    context.add(described_forward, verified, |stream, call| {
        op.forward(stream, samples, &vectors(call), &mut out.as_mut(), columns)
    })?;
    let verified = context.verify(TOLERANCE, |stream| {
        let mut to = FeaturesMut::split(dense.as_mut(), dim, others.as_mut(), strides);
        op.backward(stream, samples, &vectors(0), gradient.as_ref(), columns, &mut to)?;
        let upstream = wide(stream, &gradient, checked * columns)?;
        let expected =
            reference::backward(&shape, checked, &wide(stream, &sets[0], checked * row)?, &upstream);
        let dense = read(stream, dense.as_ref().slice(0..checked * dim))?;
        let others = read(stream, others.as_ref().slice(0..checked * row))?;
        Ok(largest_error(stacked(&dense, &others, [features, dim]).zip(expected)))
    })?;
    let described_backward = described("its backward", shape.backward_bytes(samples), backward);
    context.add(described_backward, verified, |stream, call| {
        let mut to = FeaturesMut::split(dense.as_mut(), dim, others.as_mut(), strides);
        op.backward(stream, samples, &vectors(call), gradient.as_ref(), columns, &mut to)
    })
}

/// Samples of a dense vector and others, as `[B, F, D]`; the other vectors have room for one more behind them.
fn stacked<'a>(
    dense: &'a [f32],
    others: &'a [f32],
    [features, dim]: [usize; 2],
) -> impl Iterator<Item = f32> + 'a {
    let samples = dense.chunks_exact(dim).zip(others.chunks_exact(features * dim));
    samples.flat_map(move |(dense, others)| dense.iter().chain(&others[..(features - 1) * dim]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_put_in_the_order_of_the_reference() {
        let (dense, others) =
            ([1.0, 2.0, 7.0, 8.0], [3.0, 4.0, 5.0, 6.0, -1.0, -1.0, 9.0, 10.0, 11.0, 12.0, -1.0, -1.0]);
        let all: Vec<f32> = stacked(&dense, &others, [3, 2]).collect();
        assert_eq!(all, (1..=12).map(|value| value as f32).collect::<Vec<_>>());
    }
}
