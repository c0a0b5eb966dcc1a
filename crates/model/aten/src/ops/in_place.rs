//! Ops of steps that `steptime-train` runs: concatenation whose inputs are stored within the result, and the slope of a ReLU with its bias gradient.

use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, one};
use crate::call::{Arg, Tensor};
use crate::kernel::{Concat, Kernel, Role, Slot, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, operand, output_bytes};
use crate::ops::pointwise::{self, Rule};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["steptime::cat_in_place"], copies).outputs(joined),
    OpDef::leaf(&["steptime::slope"], |call| pointwise::lower(call, &SLOPE)).outputs(sloped),
];

/// The slope reads and writes as PyTorch's; the sums of columns are small.
const SLOPE: Rule = Rule::new("threshold_backward", Work::Light, 2);

/// Returns the tensors of a list: those within the result, or those that are copied.
fn list<'c>(call: &'c BoundCall<'_>, at: usize) -> &'c [Tensor] {
    call.inputs.get(at).map_or(&[], Arg::tensors)
}

/// Returns the copies of `(in_place, copied)`, each to its columns.
fn copies(call: &BoundCall<'_>) -> Option<Lowering> {
    let copied = list(call, 1);
    let Some(first) = copied.first() else { return Some(Lowering::Nothing) };
    let bytes = |tensor: &Tensor| count(tensor.size(1)).saturating_mul(tensor.dtype.size());
    let all = || copied.iter().map(bytes);
    let kernel = Kernel::Concat(Concat {
        inputs: 1,
        outer: count(first.size(0)),
        row_bytes: all().max()?,
        least_bytes: all().min()?,
        most_bytes: all().max()?,
        contiguous: copied.iter().all(Tensor::is_contiguous),
        aligned: all().all(|bytes| bytes % 16 == 0),
    });
    let read =
        copied.iter().enumerate().map(|(at, part)| operand(Slot::Input(1, at as u16), Role::Read, part));
    let written = output_bytes(0, copied.iter().map(Tensor::bytes).fold(0, u64::saturating_add));
    Some(launches(copied.len() as u32, kernel, first.dtype, read.chain([written]).map(Some), 0))
}

fn joined(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let all = || list(call, 0).iter().chain(list(call, 1));
    let first = all().next()?;
    if first.shape.len() == 1 {
        return one(&[all().map(|part| part.size(0)).sum()], first.dtype);
    }
    one(&[first.size(0), all().map(|part| part.size(1)).sum()], first.dtype)
}

/// Returns the results of `(grad, result, threshold)`: the gradient with the slope, and its sums of columns as one row.
fn sloped(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let grad = call.tensor_at(0)?;
    let sums = [1, *grad.shape.get(1)?];
    let own = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, grad.dtype));
    Some(vec![own(&grad.shape), own(&sums)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype::F32;
    use crate::{OpCall, OpSet};

    fn tensors(shapes: &[&[i64]]) -> Arg {
        Arg::Tensors(shapes.iter().map(|shape| Tensor::contiguous(shape, F32)).collect())
    }

    #[test]
    fn inputs_within_the_result_are_not_copied() {
        let call = |copied: &[&[i64]]| {
            OpCall::new("steptime::cat_in_place", vec![tensors(&[&[8, 64]]), tensors(copied)])
        };
        assert_eq!(OpSet::standard().lower(&call(&[])), Lowering::Nothing);
        let some = call(&[&[8, 16], &[8, 4]]);
        let Lowering::Kernel(kernel) = OpSet::standard().lower(&some) else { panic!("no kernel") };
        assert_eq!((kernel.launches, kernel.footprint()), (2, 2 * 8 * 20 * 4));
        assert_eq!(OpSet::standard().outputs(&some), one(&[8, 84], F32));
        let flat = OpCall::new("steptime::cat_in_place", vec![tensors(&[&[8], &[4]]), tensors(&[])]);
        assert_eq!(OpSet::standard().outputs(&flat), one(&[12], F32));
    }

    #[test]
    fn a_slope_has_the_bytes_of_pytorchs() {
        let inputs = || vec![Tensor::contiguous(&[8, 64], F32); 2].into_iter().map(Arg::Tensor).collect();
        let lowered = |name| match OpSet::standard().lower(&OpCall::new(name, inputs())) {
            Lowering::Kernel(kernel) => (kernel.kernel.clone(), kernel.footprint()),
            other => panic!("{other:?}"),
        };
        assert_eq!(lowered("steptime::slope"), lowered("aten::threshold_backward"));
    }
}
