//! Chains of elementwise operations in one pass.

use steptime::cuda::elementwise::{Elementwise, Input};
use steptime::cuda::{Buffer, randomize};
use steptime::ops::elementwise::{Expr, Program};
use steptime::tensor::Layout;

use super::context::{Case, Context};
use super::{Benchmark, Failure};
use crate::commands::bench::dlrm::BATCH;
use crate::commands::bench::sizes::Sizes;

pub const BENCHMARK: Benchmark = Benchmark { keys: &[("B", BATCH), ("D", 1024)], run, usual };

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Failure> {
    let [rows, columns] = ["B", "D"].map(|key| sizes.get(key));
    context.check_memory(&[&[3, rows, columns]])?;
    chains(context, "", [rows, columns])
}

/// Runs chains of a layer's size and of one far larger than the caches.
fn usual(context: &mut Context) -> Result<(), Failure> {
    chains(context, ", layer", [BATCH, 1024])?;
    chains(context, ", memory", [16_384, 4096])
}

fn chains(context: &mut Context, place: &str, shape: [usize; 2]) -> Result<(), Failure> {
    let (x, bias, y) = (Expr::input(0), Expr::input(1), Expr::input(2));
    for (name, chain) in
        [("relu(x + b)", (x.clone() + bias.clone()).relu()), ("gelu(x + b) y", (x + bias).gelu() * y)]
    {
        case(context, &format!("{name}{place}"), shape, &chain)?;
    }
    Ok(())
}

fn case(context: &mut Context, name: &str, shape: [usize; 2], chain: &Expr) -> Result<(), Failure> {
    let program = Program::new(std::slice::from_ref(chain))?;
    let len = shape[0] * shape[1];
    let (whole, row) = (Layout::contiguous(&shape)?, Layout::contiguous(&shape[1..])?);
    let layouts = [whole.clone(), row, whole.clone()];
    let used = program.inputs();
    let op = Elementwise::new(context.device(), &program, &layouts[..used], &[whole])?;
    let mut buffers = Vec::new();
    for (seed, layout) in layouts[..used].iter().enumerate() {
        let mut values = Buffer::<f32>::uninit(context.device(), layout.len())?;
        randomize(&context.stream, &mut values.as_mut(), seed as u64)?;
        buffers.push(values);
    }
    let mut out = Buffer::<f32>::uninit(context.device(), len)?;
    let inputs: Vec<_> = buffers.iter().map(|values| Input::Slice(values.as_ref())).collect();
    let case = Case {
        op: "elementwise",
        name: name.into(),
        shape: format!("B={},D={}", shape[0], shape[1]),
        indices: String::new(),
        distinct: 1.0,
        bytes: program.cost(len, &[len, shape[1], len]).fused_bytes,
        flops: 0,
        geometry: vec![op.geometry()?],
    };
    context.add(case, |stream, _| op.run(stream, &inputs, &mut [out.as_mut()]))
}
