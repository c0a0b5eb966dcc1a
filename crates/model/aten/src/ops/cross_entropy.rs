//! Cross entropy of scores in one pass each way, as `steptime-train` runs it.

use crate::bound_call::BoundCall;
use crate::build_lowering::launches;
use crate::call::{Arg, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Reduce, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output, read_at};
use crate::ops::pointwise::{self, Rule};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["steptime::cross_entropy"], sums).outputs(results),
    OpDef::leaf(&["steptime::cross_entropy_backward"], |call| pointwise::lower(call, &GRADIENT))
        .outputs(|call| Some(vec![Arg::Tensor(plain(call.tensor_at(0)?))])),
];

/// The gradient of `(scores, grad, target, total, sums, divisor)` reads the scores, and writes as many elements.
const GRADIENT: Rule = Rule::new("sigmoid", Work::Medium, 1);

/// Launches of a pass: that over the scores, and that over its results.
const LAUNCHES: u32 = 2;

fn plain(scores: &Tensor) -> Tensor {
    Tensor { device: scores.device, ..Tensor::contiguous(&scores.shape, scores.dtype) }
}

/// Returns the launches of `(scores, target, divisor)`: the logarithm of a sum for each row, and their mean.
fn sums(call: &BoundCall<'_>) -> Option<Lowering> {
    let scores = call.tensor_at(0)?;
    let (rows, width) = (count(scores.size(0)), count(scores.size(1)));
    if rows.saturating_mul(width) == 0 {
        return Some(Lowering::Nothing);
    }
    let kernel = Kernel::Reduce(Reduce {
        op: "sum",
        outer: rows,
        reduced: width,
        inner: 1,
        contiguous: scores.is_contiguous(),
        run: width,
        work: Work::Medium,
    });
    let given = results(call)?;
    let written =
        given.iter().flat_map(Arg::tensors).enumerate().map(|(at, tensor)| Some(output(at, tensor)));
    let operands = [read_at(call, 0), read_at(call, 1)].into_iter().chain(written);
    Some(launches(LAUNCHES, kernel, scores.dtype, operands, rows.saturating_mul(width).saturating_mul(4)))
}

/// Returns the loss, the number of samples, and the logarithms of the rows' sums.
fn results(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let rows = call.tensor_at(0)?.size(0);
    let tensor = |shape: &[i64], dtype| Arg::Tensor(Tensor::contiguous(shape, dtype));
    Some(vec![tensor(&[], Dtype::F32), tensor(&[], Dtype::F32), tensor(&[rows], Dtype::F64)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpCall, OpSet};

    #[test]
    fn scores_are_read_once_each_way_and_written_once() {
        for (dtype, size) in [(Dtype::F32, 4), (Dtype::Bf16, 2)] {
            let scores = Arg::Tensor(Tensor::contiguous(&[64, 1000], dtype));
            let target = Arg::Tensor(Tensor::contiguous(&[64], Dtype::I64));
            let bytes = |name, inputs| {
                let lowered = OpSet::standard().lower(&OpCall::new(name, inputs));
                let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
                [kernel.bytes_read(), kernel.bytes_written()]
            };
            let inputs = vec![scores.clone(), target, Arg::Float(0.05)];
            assert_eq!(bytes("steptime::cross_entropy", inputs), [64_000 * size + 64 * 8, 4 + 4 + 64 * 8]);
            assert_eq!(bytes("steptime::cross_entropy_backward", vec![scores]), [64_000 * size; 2]);
        }
    }
}
