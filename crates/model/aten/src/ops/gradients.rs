//! Gradients of elementwise ops: the elementwise ops that autograd calls for them.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::child_calls::{child, expand as broadcast, gradient, like};
use crate::dtype::Dtype;

/// Argument of a step of a gradient.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// Gradient of the result.
    Gradient,
    /// Argument of the call.
    Own(&'static str),
    /// Result of the call.
    Result,
    /// Result of an earlier step: new memory.
    Step,
    /// Result of a comparison.
    Truth,
    /// Number.
    Number,
}
use Part::{Gradient, Number, Own, Result, Step, Truth};

/// Steps of a gradient: each an op and its arguments.
type Steps = &'static [(&'static str, &'static [Part])];

/// `mul(gradient, exp(x))`.
pub const EXP: Steps = &[("aten::mul", &[Gradient, Result])];
/// `gradient / x`.
pub const LOG: Steps = &[("aten::div", &[Gradient, Own("self")])];
/// `gradient / (x + 1)`.
pub const LOG1P: Steps = &[("aten::add", &[Own("self"), Number, Number]), ("aten::div", &[Gradient, Step])];
/// `gradient / (2 sqrt(x))`.
pub const SQRT: Steps = &[("aten::mul", &[Result, Number]), ("aten::div", &[Gradient, Step])];
/// `-gradient / 2 * result^3`.
pub const RSQRT: Steps =
    &[("aten::pow", &[Result, Number]), ("aten::mul", &[Gradient, Number]), ("aten::mul", &[Step, Step])];
/// `-gradient * result^2`.
pub const RECIPROCAL: Steps =
    &[("aten::mul", &[Result, Result]), ("aten::neg", &[Gradient]), ("aten::mul", &[Step, Step])];
/// `gradient * n x^(n-1)`.
pub const POW: Steps = &[
    ("aten::pow", &[Own("self"), Number]),
    ("aten::mul", &[Gradient, Number]),
    ("aten::mul", &[Step, Step]),
];
/// `gradient * cos(x)`.
pub const SIN: Steps = &[("aten::cos", &[Own("self")]), ("aten::mul", &[Gradient, Step])];
/// `gradient * 2 / sqrt(pi) * exp(-x^2)`.
pub const ERF: Steps = &[
    ("aten::pow", &[Own("self"), Number]),
    ("aten::neg", &[Step]),
    ("aten::exp", &[Step]),
    ("aten::mul", &[Step, Number]),
    ("aten::mul", &[Step, Gradient]),
];
/// `-gradient`.
pub const NEG: Steps = &[("aten::neg", &[Gradient])];
/// `gradient * sign(x)`.
pub const ABS: Steps = &[("aten::sgn", &[Own("self")]), ("aten::mul", &[Gradient, Step])];
/// Gradient where both bounds hold.
pub const CLAMP: Steps = &[
    ("aten::ge", &[Own("self"), Number]),
    ("aten::le", &[Own("self"), Number]),
    ("aten::logical_and_", &[Truth, Truth]),
    ("aten::where", &[Truth, Gradient, Step]),
];
/// Gradient where the bound holds.
pub const BOUND: Steps = &[("aten::ge", &[Own("self"), Number]), ("aten::where", &[Truth, Gradient, Step])];
/// Gradient for the elements taken from each of the two tensors.
pub const WHERE: Steps = &[
    ("aten::where", &[Own("condition"), Gradient, Step]),
    ("aten::where", &[Own("condition"), Step, Gradient]),
];
/// Gradient where nothing was filled in.
pub const FILLED: Steps = &[("aten::masked_fill_", &[Step, Own("mask"), Number])];
/// Gradients of both ends, multiplied by their weights.
pub const LERP: Steps = &[("aten::mul", &[Gradient, Number]), ("aten::mul", &[Gradient, Number])];
/// No gradient.
pub const NONE: Steps = &[];

/// Returns the calls of some steps.
#[must_use]
pub fn steps(call: &BoundCall<'_>, steps: Steps) -> Vec<OpCall> {
    let Some(grad) = gradient(call) else { return Vec::new() };
    let part = |part: &Part| match part {
        Gradient => Arg::Tensor(grad.clone()),
        Own(name) => call.arg_or_none(name),
        Result | Step => Arg::Tensor(like(&grad)),
        Truth => Arg::Tensor(Tensor { dtype: Dtype::Bool, ..like(&grad) }),
        Number => Arg::Int(2),
    };
    steps.iter().map(|(name, parts)| child(call, name, parts.iter().map(part).collect())).collect()
}

/// Returns one op of the gradient and the result, with the call's further arguments.
#[must_use]
pub fn by_result(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    let Some(grad) = gradient(call) else { return Vec::new() };
    let result = Arg::Tensor(like(&grad));
    let rest = call.inputs.iter().skip(1).cloned();
    vec![child(call, name, [Arg::Tensor(grad), result].into_iter().chain(rest).collect())]
}

/// Returns one op of the gradient and the arguments.
#[must_use]
pub fn by_input(call: &BoundCall<'_>, name: &str) -> Vec<OpCall> {
    let grad = gradient(call).map(Arg::Tensor);
    vec![child(call, name, grad.into_iter().chain(call.inputs.iter().cloned()).collect())]
}

/// Returns an argument if it is a tensor that has a gradient.
fn learnt<'c>(call: &BoundCall<'c>, name: &str) -> Option<&'c Tensor> {
    call.tensor(name).filter(|tensor| tensor.dtype.is_float() && tensor.device != Device::Cpu)
}

/// Returns the sums of a gradient along the dimensions in which its arguments were broadcast.
fn sums(call: &BoundCall<'_>, grad: &Tensor) -> Vec<OpCall> {
    let rank = grad.shape.len();
    let all = ["self", "other"].into_iter().filter_map(|name| learnt(call, name));
    all.filter_map(|tensor| {
        let added = rank.saturating_sub(tensor.shape.len());
        let broadcast =
            |&dim: &usize| grad.shape[dim] != 1 && (dim < added || tensor.shape[dim - added] == 1);
        let dims: SmallVec<[i64; 4]> = (0..rank).filter(broadcast).map(|dim| dim as i64).collect();
        let inputs = vec![Arg::Tensor(like(grad)), Arg::Ints(dims.clone()), Arg::Bool(true), Arg::None];
        (!dims.is_empty()).then(|| child(call, "aten::sum", inputs))
    })
    .collect()
}

/// Returns the gradient of a sum, which is that of the result; for a difference, one of them is negated.
#[must_use]
pub fn sum(call: &BoundCall<'_>, turned: Option<&str>) -> Vec<OpCall> {
    let Some(grad) = gradient(call) else { return Vec::new() };
    let turned = turned.and_then(|name| learnt(call, name));
    let first = turned.map(|_| child(call, "aten::neg", vec![Arg::Tensor(grad.clone())]));
    first.into_iter().chain(sums(call, &grad)).collect()
}

/// Returns the gradient of a mean: that of the result, repeated, divided by the number of elements.
#[must_use]
pub fn mean(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(input), Some(grad)) = (call.tensor("self"), gradient(call)) else { return Vec::new() };
    let number = input.numel() / grad.numel().max(1);
    let mut shape = input.shape.clone();
    if grad.shape.len() == shape.len() {
        shape = grad.shape.clone();
    } else if let Some(dims) = call.ints("dim") {
        let rank = shape.len() as i64;
        for dim in dims.iter().filter_map(|&dim| usize::try_from(if dim < 0 { dim + rank } else { dim }).ok())
        {
            if let Some(size) = shape.get_mut(dim) {
                *size = 1;
            }
        }
    } else {
        shape.fill(1);
    }
    let repeated = broadcast(&Tensor::contiguous(&shape, grad.dtype), &input.shape);
    vec![child(call, "aten::div", vec![Arg::Tensor(repeated), Arg::Int(number as i64)])]
}

/// Returns the gradients of a product: for each factor, the other one times that of the result.
#[must_use]
pub fn product(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(grad) = gradient(call) else { return Vec::new() };
    let both =
        [("self", "other"), ("other", "self")].into_iter().filter(|(own, _)| learnt(call, own).is_some());
    let product = |other| child(call, "aten::mul", vec![Arg::Tensor(grad.clone()), call.arg_or_none(other)]);
    let products = both.map(|(_, other)| product(other));
    products.chain(sums(call, &grad)).collect()
}

/// `gradient / b`, and `-gradient * ((a / b) / b)`.
#[must_use]
pub fn quotient(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(grad) = gradient(call) else { return Vec::new() };
    let step = || Arg::Tensor(like(&grad));
    let mut all = Vec::new();
    if learnt(call, "other").is_some() {
        all.push(child(call, "aten::div", vec![call.arg_or_none("self"), call.arg_or_none("other")]));
        all.push(child(call, "aten::div", vec![step(), call.arg_or_none("other")]));
        all.push(child(call, "aten::neg", vec![Arg::Tensor(grad.clone())]));
        all.push(child(call, "aten::mul", vec![step(), step()]));
    }
    if learnt(call, "self").is_some() {
        all.push(child(call, "aten::div", vec![Arg::Tensor(grad.clone()), call.arg_or_none("other")]));
    }
    all.into_iter().chain(sums(call, &grad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::child_calls::fresh;

    fn names(name: &str, inputs: Vec<Arg>) -> Vec<String> {
        OpSet::standard().backward(&OpCall::new(name, inputs)).into_iter().map(|call| call.name).collect()
    }

    #[test]
    fn a_bias_sums_its_gradient() {
        let found = OpSet::standard()
            .backward(&OpCall::new("aten::add", vec![fresh(&[8, 4], F32), fresh(&[4], F32), Arg::Int(1)]));
        assert_eq!((found[0].name.as_str(), found[0].ints_at(1)), ("aten::sum", Some([0].as_slice().into())));
        assert!(names("aten::add", vec![fresh(&[8], F32), fresh(&[8], F32), Arg::Int(1)]).is_empty());
    }

    #[test]
    fn a_mean_divides_its_gradient() {
        let dims = Arg::Ints([-1].as_slice().into());
        let call = OpCall::new("aten::mean", vec![fresh(&[8, 5], F32), dims, Arg::Bool(false), Arg::None]);
        let all = OpSet::standard().backward(&call);
        let grad = all[0].tensor_at(0).map(|grad| (grad.shape.to_vec(), grad.strides.to_vec()));
        assert_eq!((all[0].int_at(1), grad), (Some(5), Some((vec![8, 5], vec![1, 0]))));
    }

    #[test]
    fn products_and_quotients() {
        let both = || vec![fresh(&[8], F32), fresh(&[8], F32)];
        assert_eq!(names("aten::mul", both()), ["aten::mul", "aten::mul"]);
        assert_eq!(names("aten::mul", vec![fresh(&[8], F32), Arg::Float(2.0)]), ["aten::mul"]);
        assert_eq!(names("aten::div", both()).len(), 5);
        assert_eq!(names("aten::div", vec![fresh(&[8], F32), Arg::Float(2.0)]), ["aten::div"]);
    }

    #[test]
    fn activations_have_ops_of_their_own() {
        assert_eq!(names("aten::relu", vec![fresh(&[8], F32)]), ["aten::threshold_backward"]);
        assert_eq!(names("aten::sigmoid", vec![fresh(&[8], F32)]), ["aten::sigmoid_backward"]);
        assert_eq!(names("aten::sqrt", vec![fresh(&[8], F32)]), ["aten::mul", "aten::div"]);
    }
}
