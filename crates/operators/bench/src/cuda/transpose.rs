//! Copies of permuted tensors.

use steptime_cuda::rearrange::Copy;
use steptime_cuda::{Buffer, randomize};
use steptime_ops::Cpu;
use steptime_ops::rearrange::contiguous;
use steptime_tensor::{Layout, Tensor};

use super::context::{Case, Context};
use super::{Benchmark, EXACT};
use crate::Error;
use crate::sizes::Sizes;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "transpose",
    about: "Copies of permuted tensors",
    sizes: "M rows of N columns",
    keys: &[("M", 16_384), ("N", 4096)],
    run,
    usual,
};

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [rows, columns] = ["M", "N"].map(|key| sizes.get(key));
    context.check_memory(&[&[2, rows, columns]])?;
    case(context, "", &[rows, columns], &[1, 0])
}

/// Runs matrices, square, narrow and odd, batches of them, and rows that stay whole.
fn usual(context: &mut Context) -> Result<(), Error> {
    case(context, "square", &[16_384, 4096], &[1, 0])?;
    case(context, "narrow", &[1_000_000, 64], &[1, 0])?;
    case(context, "odd", &[8191, 8193], &[1, 0])?;
    case(context, "odd planes", &[10_000, 97, 65], &[0, 2, 1])?;
    case(context, "larger odd planes", &[800, 333, 255], &[0, 2, 1])?;
    case(context, "batches", &[2048, 27, 128], &[0, 2, 1])?;
    case(context, "back", &[2048, 128, 27], &[0, 2, 1])?;
    case(context, "large batches", &[16_384, 27, 128], &[0, 2, 1])?;
    case(context, "small planes", &[262_144, 16, 16], &[0, 2, 1])?;
    case(context, "rows", &[16_384, 27, 128], &[1, 0, 2])?;
    case(context, "odd rows", &[16_384, 128, 27], &[1, 0, 2])
}

fn case(context: &mut Context, name: &str, shape: &[usize], order: &[usize]) -> Result<(), Error> {
    let from = Layout::contiguous(shape)?.permute(order)?;
    let to = Layout::contiguous(from.shape())?;
    let op = Copy::new(context.device(), &from, &to)?;
    let mut values = Buffer::<f32>::uninit(context.device(), to.len())?;
    randomize(&context.stream, &mut values.as_mut(), 1)?;
    let mut out = Buffer::<f32>::uninit(context.device(), to.len())?;
    let case = Case {
        op: "transpose",
        name: name.into(),
        shape: format!("{shape:?} as {order:?}"),
        indices: String::new(),
        distinct: 1.0,
        bytes: 8 * to.len() as u64,
        flops: 0,
        geometry: op.geometry()?.into_iter().collect(),
    };
    let verified = context.verify(EXACT, |stream| {
        op.run(stream, values.as_ref(), &mut out.as_mut())?;
        let given = Tensor::from_vec(values.to_host(stream)?, shape)?;
        let expected = contiguous(&Cpu::new(0)?, &given.view().permute(order)?)?;
        let same = expected.as_slice() == Some(&out.to_host(stream)?[..]);
        Ok(if same { 0.0 } else { f64::INFINITY })
    })?;
    context.add(case, verified, |stream, _| op.run(stream, values.as_ref(), &mut out.as_mut()))
}
