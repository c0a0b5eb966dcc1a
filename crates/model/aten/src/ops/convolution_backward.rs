//! Gradients of convolutions.

use crate::bound_call::BoundCall;
use crate::build_lowering::launches;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::{child, ints};
use crate::kernel::{Conv, Kernel};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read};
use crate::ops::convolution::{Parameters, geometry, like, multiplications, pointwise, three};
use crate::ops::copy::{CHANNELS_LAST, CONTIGUOUS, lies_in};

/// Definitions of the gradients of convolutions.
pub static OPS: &[OpDef] =
    &[OpDef::leaf(&["aten::convolution_backward"], lower_backward).outputs(shape_backward).expand(around)];

/// Returns the requested gradients: of input, weight, bias.
fn gradients(call: &BoundCall<'_>) -> [bool; 3] {
    let mask = call.ints("output_mask").unwrap_or_default();
    std::array::from_fn(|at| mask.get(at).is_some_and(|&flag| flag != 0))
}

fn shape_backward(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let (grad, input, weight) = (call.tensor("grad_output")?, call.tensor("input")?, call.tensor("weight")?);
    let bias = Tensor::contiguous(&[grad.size(1)], grad.dtype);
    let all = [like(&input.shape, input), like(&weight.shape, weight), bias];
    let given = all.into_iter().zip(gradients(call));
    Some(given.map(|(tensor, asked)| if asked { Arg::Tensor(tensor) } else { Arg::None }).collect())
}

/// Returns the calls of a gradient: copies of operands into the memory format in which cuDNN computes, and the sum for a bias. The
/// format is channels last if that of the input or the weight is.
fn around(call: &BoundCall<'_>) -> Vec<OpCall> {
    let asked = gradients(call);
    let (Some(grad), Some(input), Some(weight)) =
        (call.tensor("grad_output"), call.tensor("input"), call.tensor("weight"))
    else {
        return Vec::new();
    };
    if asked == [false; 3] || grad.numel() == 0 {
        return Vec::new();
    }
    let last = input.shape.len() == 4 && (input.is_channels_last() || weight.is_channels_last());
    let format = if last { CHANNELS_LAST } else { CONTIGUOUS };
    let turned = |tensor: &Tensor| {
        let inputs = vec![Arg::Tensor(tensor.clone()), Arg::Int(format)];
        child(call, "aten::contiguous", inputs)
    };
    let mut all: Vec<OpCall> = [(grad, true), (input, asked[1]), (weight, asked[0])]
        .into_iter()
        .filter(|&(tensor, read)| read && !lies_in(tensor, format))
        .map(|(tensor, _)| turned(tensor))
        .collect();
    if asked[2] {
        let dims: Vec<i64> = (0..grad.shape.len() as i64).filter(|&dim| dim != 1).collect();
        let inputs = vec![Arg::Tensor(grad.clone()), ints(&dims), Arg::Bool(false), Arg::None];
        all.push(child(call, "aten::sum", inputs));
    }
    all
}

/// Returns the number of launches as recorded with cuDNN on an H200: each gradient of images without channels last has its own rearrangements
/// and sums.
fn count_launches(conv: &Conv, asked: [bool; 3]) -> u32 {
    let both = asked[0] && asked[1];
    let products = match (pointwise(conv) || conv.channels_last, both) {
        (true, true) => 3,
        (true, false) => 2,
        (false, true) => 9,
        (false, false) => 5,
    };
    products + u32::from(asked[2])
}

fn lower_backward(call: &BoundCall<'_>) -> Option<Lowering> {
    let (Some(grad), Some(input), Some(weight)) =
        (call.tensor("grad_output"), call.tensor("input"), call.tensor("weight"))
    else {
        return None;
    };
    let asked = gradients(call);
    let mut conv = geometry(&Parameters::from_call(call), input, weight)?;
    // The gradient of a bias is a sum, which is a separate op.
    if grad.numel() == 0 || asked[..2] == [false; 2] {
        return Some(Lowering::Nothing);
    }
    conv.gradients = Some([asked[0], asked[1], false]);
    conv.output = three(grad.shape.get(2..).unwrap_or_default(), conv.dims.into(), 1);
    let passes = u64::from(asked[0]) + u64::from(asked[1]);
    let flops = multiplications(&conv).saturating_mul(passes);
    let gradient = |ret: usize, bytes| asked[ret].then_some(output_bytes(ret as u16, bytes));
    let operands = [
        read(call, "grad_output"),
        asked[1].then(|| read(call, "input")).flatten(),
        asked[0].then(|| read(call, "weight")).flatten(),
        gradient(0, input.bytes()),
        gradient(1, weight.bytes()),
    ];
    Some(launches(count_launches(&conv, asked), Kernel::Conv(conv), input.dtype, operands, flops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::ints;

    #[test]
    fn gradients_that_are_not_asked_for_cost_nothing() {
        let tensor = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, F32));
        let backward = |mask: &[i64]| {
            let sizes = [ints(&[0]), ints(&[1, 1]), ints(&[1, 1]), ints(&[1, 1])];
            let inputs = [tensor(&[4, 8, 10, 10]), tensor(&[4, 3, 10, 10]), tensor(&[8, 3, 3, 3])];
            let rest = [Arg::Bool(false), ints(&[0, 0]), Arg::Int(1), ints(mask)];
            let call = OpCall::new(
                "aten::convolution_backward",
                inputs.into_iter().chain(sizes).chain(rest).collect(),
            );
            OpSet::standard().lower(&call)
        };
        let once = 2 * 4 * 8 * 100 * 3 * 9;
        let weight = backward(&[0, 1, 0]);
        let Some(kernel) = weight.kernel() else { panic!("{weight:?}") };
        assert_eq!((kernel.flops, kernel.bytes_written()), (once, 8 * 27 * 4));
        assert_eq!(kernel.bytes_read(), 4 * (4 * 8 * 100 + 4 * 3 * 100));
        let both = backward(&[1, 1, 0]);
        assert_eq!(both.kernel().map(|kernel| kernel.flops), Some(2 * once));
        assert_eq!(backward(&[0, 0, 0]), Lowering::Nothing);
    }
}
