//! Copies of permuted tensors.

use steptime::cuda::rearrange::Copy;
use steptime::cuda::{Buffer, randomize};
use steptime::tensor::Layout;

use super::Failure;
use super::context::{Case, Context};

/// Runs matrices, square, narrow and odd, batches of them, and rows that stay.
pub fn run(context: &mut Context) -> Result<(), Failure> {
    for (name, shape, order) in [
        ("square", vec![16_384, 4096], vec![1, 0]),
        ("narrow", vec![1_000_000, 64], vec![1, 0]),
        ("odd", vec![8191, 8193], vec![1, 0]),
        ("batches", vec![2048, 27, 128], vec![0, 2, 1]),
        ("back", vec![2048, 128, 27], vec![0, 2, 1]),
        ("large batches", vec![16_384, 27, 128], vec![0, 2, 1]),
        ("small planes", vec![262_144, 16, 16], vec![0, 2, 1]),
        ("rows", vec![16_384, 27, 128], vec![1, 0, 2]),
        ("odd rows", vec![16_384, 128, 27], vec![1, 0, 2]),
    ] {
        let from = Layout::contiguous(&shape)?.permute(&order)?;
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
            geometry: op.geometry()?.into_iter().collect(),
        };
        context.add(case, |stream, _| op.run(stream, values.as_ref(), &mut out.as_mut()))?;
    }
    Ok(())
}
