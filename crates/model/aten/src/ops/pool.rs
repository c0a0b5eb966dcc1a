//! Pooling: with windows of a given size, or with windows for a given output size.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, OpCall, Tensor};
use crate::child_calls::child;
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Pass, Pool, PoolKind};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output, output_bytes, read};

/// Definitions of poolings.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::max_pool2d_with_indices"], |call| forward(call, &MAX))
        .outputs(|call| shape(call, &MAX))
        .backward(|call| gradients(call, "aten::max_pool2d_with_indices_backward")),
    OpDef::leaf(&["aten::max_pool3d_with_indices"], |call| forward(call, &MAX3))
        .outputs(|call| shape(call, &MAX3))
        .backward(|call| gradients(call, "aten::max_pool3d_with_indices_backward")),
    OpDef::leaf(&["aten::avg_pool2d"], |call| forward(call, &AVERAGE))
        .outputs(|call| shape(call, &AVERAGE))
        .backward(|call| gradients(call, "aten::avg_pool2d_backward")),
    OpDef::leaf(&["aten::avg_pool3d"], |call| forward(call, &AVERAGE3))
        .outputs(|call| shape(call, &AVERAGE3))
        .backward(|call| gradients(call, "aten::avg_pool3d_backward")),
    OpDef::leaf(&["aten::_adaptive_avg_pool2d"], |call| forward(call, &ADAPTIVE))
        .outputs(|call| shape(call, &ADAPTIVE))
        .backward(|call| gradients(call, "aten::_adaptive_avg_pool2d_backward")),
    OpDef::leaf(&["aten::_adaptive_avg_pool3d"], |call| forward(call, &ADAPTIVE3))
        .outputs(|call| shape(call, &ADAPTIVE3))
        .backward(|call| gradients(call, "aten::_adaptive_avg_pool3d_backward")),
    OpDef::leaf(&["aten::adaptive_max_pool2d"], |call| forward(call, &ADAPTIVE_MAX))
        .outputs(|call| shape(call, &ADAPTIVE_MAX))
        .backward(|call| gradients(call, "aten::adaptive_max_pool2d_backward")),
    OpDef::leaf(&["aten::adaptive_max_pool3d"], |call| forward(call, &ADAPTIVE_MAX3))
        .outputs(|call| shape(call, &ADAPTIVE_MAX3))
        .backward(|call| gradients(call, "aten::adaptive_max_pool3d_backward")),
    OpDef::leaf(&["aten::max_pool2d_with_indices_backward"], |call| backward(call, &MAX))
        .outputs(like_input)
        .expand(zeros),
    OpDef::leaf(&["aten::max_pool3d_with_indices_backward"], |call| backward(call, &MAX3))
        .outputs(like_input),
    OpDef::leaf(&["aten::avg_pool2d_backward"], |call| backward(call, &AVERAGE)).outputs(like_input),
    OpDef::leaf(&["aten::avg_pool3d_backward"], |call| backward(call, &AVERAGE3)).outputs(like_input),
    OpDef::leaf(&["aten::_adaptive_avg_pool2d_backward"], |call| backward(call, &ADAPTIVE))
        .outputs(like_input),
    OpDef::leaf(&["aten::_adaptive_avg_pool3d_backward"], |call| backward(call, &ADAPTIVE3))
        .outputs(like_input),
    OpDef::leaf(&["aten::adaptive_max_pool2d_backward"], |call| backward(call, &ADAPTIVE_MAX))
        .outputs(like_input),
    OpDef::leaf(&["aten::adaptive_max_pool3d_backward"], |call| backward(call, &ADAPTIVE_MAX3))
        .outputs(like_input),
];

/// Differences between the ops.
struct Form {
    kind: PoolKind,
    /// Number of spatial dimensions.
    dims: usize,
    /// Whether the second argument is the size of the output and not of the window.
    adaptive: bool,
    /// Whether windows are dilated.
    dilated: bool,
    /// Whether the places of maxima are returned, and taken by the gradient.
    indices: bool,
}

const MAX: Form = Form { kind: PoolKind::Max, dims: 2, adaptive: false, dilated: true, indices: true };
const MAX3: Form = Form { dims: 3, ..MAX };
const AVERAGE: Form = Form { kind: PoolKind::Average, dilated: false, indices: false, ..MAX };
const AVERAGE3: Form = Form { dims: 3, ..AVERAGE };
const ADAPTIVE: Form =
    Form { kind: PoolKind::Adaptive, dims: 2, adaptive: true, dilated: false, indices: false };
const ADAPTIVE3: Form = Form { dims: 3, ..ADAPTIVE };
const ADAPTIVE_MAX: Form = Form { indices: true, ..ADAPTIVE };
const ADAPTIVE_MAX3: Form = Form { dims: 3, ..ADAPTIVE_MAX };

type Sizes = SmallVec<[u64; 3]>;

/// Returns the last `dims` sizes of a tensor.
fn spatial(tensor: &Tensor, dims: usize) -> Sizes {
    let first = tensor.shape.len() as i64 - dims as i64;
    (0..dims as i64).map(|at| usize::try_from(first + at).map_or(1, |at| count(tensor.shape[at]))).collect()
}

/// Returns a parameter per dimension: a single number applies to all, an empty list means `missing`.
fn parameter(call: &BoundCall<'_>, name: &str, dims: usize, missing: &[u64]) -> Sizes {
    let list = call.ints(name).unwrap_or_default();
    (0..dims)
        .map(|at| match (list.len(), missing.get(at)) {
            (0, missing) => missing.copied().unwrap_or(1),
            (1, _) => count(list[0]),
            _ => list.get(at).map_or(1, |&value| count(value)),
        })
        .collect()
}

/// Returns windows, strides and the output's sizes.
fn windows(call: &BoundCall<'_>, form: &Form, input: &Sizes) -> [Sizes; 3] {
    let dims = form.dims;
    if form.adaptive {
        let output = parameter(call, "output_size", dims, input);
        let window: Sizes =
            input.iter().zip(&output).map(|(&size, &out)| size.div_ceil(out.max(1))).collect();
        return [window.clone(), window, output];
    }
    let window = parameter(call, "kernel_size", dims, &[]);
    let stride = parameter(call, "stride", dims, &window);
    let padding = parameter(call, "padding", dims, &[0; 3]);
    let dilation =
        if form.dilated { parameter(call, "dilation", dims, &[1; 3]) } else { smallvec::smallvec![1; dims] };
    let ceil = call.flag("ceil_mode").unwrap_or(false);
    let output = (0..dims).map(|at| {
        let reach = dilation[at].saturating_mul(window[at].max(1) - 1).saturating_add(1);
        let room = padding[at].saturating_mul(2).saturating_add(input[at]).saturating_sub(reach);
        let stride = stride[at].max(1);
        let size = if ceil { room.div_ceil(stride) } else { room / stride }.saturating_add(1);
        // The last window must begin inside the input or its left padding.
        if ceil && (size - 1).saturating_mul(stride) >= input[at].saturating_add(padding[at]) {
            size - 1
        } else {
            size
        }
    });
    let output = output.collect();
    [window, stride, output]
}

/// Returns height and width; depth counts with the planes.
fn flat(sizes: &Sizes) -> [u64; 2] {
    match sizes[..] {
        [.., height, width] => [height, width],
        [width] => [1, width],
        [] => [1, 1],
    }
}

fn kernel(form: &Form, pass: Pass, input: &Tensor, out: &Sizes, window: &Sizes, stride: &Sizes) -> Kernel {
    let sizes = spatial(input, form.dims);
    let area: u64 = flat(&sizes).iter().product();
    Kernel::Pool(Pool {
        kind: form.kind,
        pass,
        planes: input.numel() / area.max(1),
        input: flat(&sizes),
        output: flat(out),
        window: flat(window),
        stride: flat(stride),
        channels_last: input.is_channels_last(),
    })
}

/// Returns the shape of the result.
fn pooled(input: &Tensor, dims: usize, out: &Sizes) -> SmallVec<[i64; 5]> {
    let kept = input.shape.len().saturating_sub(dims);
    input.shape[..kept].iter().copied().chain(out.iter().map(|&size| size as i64)).collect()
}

fn shape(call: &BoundCall<'_>, form: &Form) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    if input.shape.len() < form.dims {
        return None;
    }
    let [_, _, out] = windows(call, form, &spatial(input, form.dims));
    let sizes = pooled(input, form.dims, &out);
    let mut all = vec![Arg::Tensor(Tensor::contiguous(&sizes, input.dtype))];
    if form.indices {
        all.push(Arg::Tensor(Tensor::contiguous(&sizes, Dtype::I64)));
    }
    Some(all)
}

fn like_input(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    Some(vec![Arg::Tensor(Tensor::contiguous(&input.shape, input.dtype))])
}

fn forward(call: &BoundCall<'_>, form: &Form) -> Option<Lowering> {
    let (Some(input), Some(given)) = (call.tensor("self"), shape(call, form)) else {
        return None;
    };
    let [window, stride, out] = windows(call, form, &spatial(input, form.dims));
    let numel = given.first().and_then(|arg| arg.tensors().first()).map_or(0, Tensor::numel);
    if numel == 0 {
        return Some(Lowering::Nothing);
    }
    let results =
        given.iter().enumerate().map(|(ret, arg)| arg.tensors().first().map(|tensor| output(ret, tensor)));
    let flops = window.iter().fold(numel, |n, &size| n.saturating_mul(size));
    let kernel = kernel(form, Pass::Forward, input, &out, &window, &stride);
    Some(work(kernel, input.dtype, std::iter::once(read(call, "self")).chain(results), flops))
}

/// Returns the calls before the gradient of maxima: zeros that it is written into, and a copy of a gradient that is not contiguous.
fn zeros(call: &BoundCall<'_>) -> Vec<OpCall> {
    let scattered =
        call.tensor("grad_output").filter(|grad| !grad.is_contiguous() && !grad.is_channels_last());
    let copied =
        scattered.map(|grad| child(call, "aten::contiguous", vec![Arg::Tensor(grad.clone()), Arg::Int(0)]));
    let target = like_input(call).unwrap_or_default();
    copied.into_iter().chain([child(call, "aten::zero_", target)]).collect()
}

/// Takes (gradient, input, parameters, places of maxima).
fn gradients(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    let Some(mut all) = call.results().map(Vec::into_iter) else { return Vec::new() };
    let grad = all.next().unwrap_or_default();
    let adaptive = name.contains("adaptive");
    let given = call.inputs.iter().take(if adaptive { 1 } else { usize::MAX }).cloned();
    vec![child(call, name, std::iter::once(grad).chain(given).chain(all).collect())]
}

/// Takes (gradient, input, parameters, indices).
fn backward(call: &BoundCall<'_>, form: &Form) -> Option<Lowering> {
    let (Some(grad), Some(input)) = (call.tensor("grad_output"), call.tensor("self")) else {
        return None;
    };
    if input.numel() == 0 || grad.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let out = spatial(grad, form.dims);
    let sizes = spatial(input, form.dims);
    let [window, stride] = if form.adaptive {
        let window: Sizes = sizes.iter().zip(&out).map(|(&size, &out)| size.div_ceil(out.max(1))).collect();
        [window.clone(), window]
    } else {
        let [window, stride, _] = windows(call, form, &sizes);
        [window, stride]
    };
    let numbers = |name| call.tensor(name).is_some_and(|tensor| tensor.dtype == Dtype::I64);
    let places = if form.indices && numbers("indices") { read(call, "indices") } else { None };
    let flops = window.iter().fold(grad.numel(), |n, &size| n.saturating_mul(size));
    let kernel = kernel(form, Pass::Backward, input, &out, &window, &stride);
    Some(work(
        kernel,
        input.dtype,
        [read(call, "grad_output"), places, Some(output_bytes(0, input.bytes()))],
        flops,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;

    fn ints(list: &[i64]) -> Arg {
        Arg::Ints(list.into())
    }

    fn tensor(shape: &[i64], dtype: Dtype) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, dtype))
    }

    fn pool(call: &OpCall) -> (Pool, u64, u64) {
        let lowered = OpSet::standard().lower(call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Pool(pool) = kernel.kernel else { panic!("{kernel:?}") };
        (pool, kernel.bytes_read(), kernel.bytes_written())
    }

    #[test]
    fn maxima_are_given_with_their_places() {
        let parameters = [ints(&[3, 3]), ints(&[2, 2]), ints(&[1, 1]), ints(&[1, 1]), Arg::Bool(false)];
        let inputs = std::iter::once(tensor(&[16, 64, 112, 112], F32)).chain(parameters).collect();
        let (pool, read, written) = pool(&OpCall::new("aten::max_pool2d_with_indices", inputs));
        assert_eq!((pool.output, pool.planes, pool.window, pool.stride), ([56, 56], 1024, [3, 3], [2, 2]));
        assert_eq!((read, written), (1024 * 112 * 112 * 4, 1024 * 56 * 56 * 12));
    }

    #[test]
    fn a_missing_stride_is_the_window_and_the_ceiling_is_kept_inside() {
        let inputs = vec![tensor(&[1, 2, 5, 5], F32), ints(&[2]), ints(&[]), ints(&[0]), Arg::Bool(true)];
        assert_eq!(pool(&OpCall::new("aten::avg_pool2d", inputs)).0.output, [3, 3]);
    }

    #[test]
    fn gradients_of_maxima_read_their_places() {
        let parameters = [ints(&[2, 2]), ints(&[2, 2]), ints(&[0, 0]), ints(&[1, 1]), Arg::Bool(false)];
        let first = [tensor(&[1, 4, 4, 4], F32), tensor(&[1, 4, 8, 8], F32)];
        let inputs = first.into_iter().chain(parameters).chain([tensor(&[1, 4, 4, 4], Dtype::I64)]).collect();
        let (pool, read, written) = pool(&OpCall::new("aten::max_pool2d_with_indices_backward", inputs));
        assert_eq!((pool.input, pool.output, pool.pass), ([8, 8], [4, 4], Pass::Backward));
        assert_eq!((read, written), (64 * 12, 256 * 4));
    }

    #[test]
    fn adaptive_windows_follow_from_the_output() {
        let call =
            OpCall::new("aten::_adaptive_avg_pool2d", vec![tensor(&[2, 3, 14, 14], F32), ints(&[7, 7])]);
        assert_eq!(pool(&call).0.window, [2, 2]);
    }
}
