//! Elementwise programs over operands.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::Function;
use steptime_ops::elementwise::{Expr, Input, Program};
use steptime_tensor::View;

use super::pointwise;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, of_type};
use crate::kernel::Kernel;
use crate::target::Target;

/// An instruction that computes expressions of operands. An input in the memory of an output must be that output, which is then computed in
/// place. A CPU converts integers to floats, and a GPU takes floats of 16 bits.
pub(super) fn computes(
    target: Target,
    outputs: &[Expr],
    inputs: Vec<Arg>,
    targets: Vec<Arg>,
) -> Result<Built, Refusal> {
    let program = Program::new(outputs).map_err(|source| source.to_string())?;
    if target == Target::Cuda {
        return pointwise::on_gpu(Function::Program(program), inputs, targets);
    }
    for to in &targets {
        of_type(to, Dtype::F32)?;
    }
    let mut in_place = Vec::with_capacity(inputs.len());
    for input in &inputs {
        if input.dtype != Dtype::I64 {
            of_type(input, Dtype::F32)?;
        }
        let output = targets.iter().position(|to| to.slot == input.slot);
        if output.is_some_and(|output| targets[output].layout != input.layout) {
            return Err("an operand overlaps the result".to_owned());
        }
        in_place.push(output);
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let mut integers: Vec<Vec<f32>> = Vec::new();
        for input in inputs.iter().filter(|input| input.dtype == Dtype::I64) {
            integers.push(input.ints(&run.memory)?.to_vec().iter().map(|&value| value as f32).collect());
        }
        let mut converted = integers.iter();
        let mut all = Vec::with_capacity(inputs.len());
        for (input, output) in inputs.iter().zip(&in_place) {
            all.push(match output {
                Some(output) => Input::InPlace(*output),
                None if input.dtype == Dtype::I64 => {
                    let values = converted.next().map_or(&[][..], Vec::as_slice);
                    Input::View(View::from_slice(values, input.shape())?)
                }
                None => Input::View(input.floats(&run.memory)?),
            });
        }
        let mut outputs = Vec::with_capacity(targets.len());
        for target in &targets {
            outputs.push(target.floats_mut(&mut run.memory)?);
        }
        Ok(program.run(run.cpu, &all, &mut outputs)?)
    })))
}

/// An instruction that computes a function of the first argument.
pub(super) fn of_one(b: &mut Binder<'_, '_>, function: impl Fn(Expr) -> Expr) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let input = b.reads(0)?;
    let output = b.writes(0)?;
    computes(b.target, &[function(Expr::input(0))], vec![input], vec![output])
}

/// An instruction that computes a function of the first two arguments.
pub(super) fn of_two(
    b: &mut Binder<'_, '_>,
    function: impl Fn(Expr, Expr) -> Expr,
) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let inputs = vec![b.reads(0)?, b.reads(1)?];
    let output = b.writes(0)?;
    computes(b.target, &[function(Expr::input(0), Expr::input(1))], inputs, vec![output])
}
