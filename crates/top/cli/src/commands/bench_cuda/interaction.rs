//! Dot interaction of vectors that lie side by side.

use steptime::cuda::interaction::{Features, FeaturesMut, Interaction, Strides};
use steptime::cuda::{Buffer, Stream, randomize};
use steptime::ops::interaction::Interaction as Shape;

use super::context::{Case, Context};
use super::{Benchmark, Failure};
use crate::commands::bench::dlrm::{self, BATCH};
use crate::commands::bench::sizes::Sizes;

/// Sets of vectors, used in turn.
const SETS: usize = 4;

pub const BENCHMARK: Benchmark = Benchmark { keys: &[("B", BATCH), ("F", 27), ("D", 128)], run, usual };

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Failure> {
    let [samples, features, dim] = ["B", "F", "D"].map(|key| sizes.get(key));
    context.check_memory(&[&[SETS + 1, samples, features, dim], &[samples, features, features]])?;
    case(context, "", [samples, features, dim])
}

/// Runs the shapes of all DLRMs.
fn usual(context: &mut Context) -> Result<(), Failure> {
    dlrm::ALL.iter().try_for_each(|model| {
        case(context, &format!("DLRM {}", model.name), [BATCH, model.features(), model.dim])
    })
}

fn random(stream: &Stream, floats: usize, seed: u64) -> Result<Buffer<f32>, Failure> {
    let mut values = Buffer::uninit(stream.device(), floats)?;
    randomize(stream, &mut values.as_mut(), seed)?;
    Ok(values)
}

fn case(context: &mut Context, name: &str, sizes: [usize; 3]) -> Result<(), Failure> {
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
    context.add(described("interaction", shape.forward_bytes(samples), forward), |stream, call| {
        op.forward(stream, samples, &vectors(call), &mut out.as_mut(), columns)
    })?;
    context.add(described("its backward", shape.backward_bytes(samples), backward), |stream, call| {
        let mut to = FeaturesMut::split(dense.as_mut(), dim, others.as_mut(), strides);
        op.backward(stream, samples, &vectors(call), gradient.as_ref(), columns, &mut to)
    })
}
