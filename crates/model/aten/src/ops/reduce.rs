//! Sums and other reductions along dimensions.
//!
//! Many have two forms under one name: the short one, without dimensions, calls the long one.

use crate::axes::{axis, count};
use crate::bound_call::BoundCall;
use crate::build_lowering::{copied, launches, result};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Operand, Reduce, Role, Slot, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::read;

/// Defines a reducing op, by the form of its arguments.
macro_rules! reduces {
    ($name:literal, $work:ident, $form:ident) => {
        OpDef::leaf(&[$name], |call| lower(call, &$name[6..], Work::$work, Form::$form))
            .outputs(|call| shapes(call, Form::$form))
            .expand(|call| long_form(call, Form::$form))
    };
}

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    reduces!("aten::sum", Light, Dims),
    reduces!("aten::mean", Light, Dims).backward(crate::ops::gradients::mean),
    reduces!("aten::nansum", Light, Dims),
    reduces!("aten::amax", Light, Leaf),
    reduces!("aten::amin", Light, Leaf),
    reduces!("aten::prod", Light, Leaf),
    reduces!("aten::any", Light, Leaf),
    reduces!("aten::all", Light, Leaf),
    reduces!("aten::argmax", Light, Leaf),
    reduces!("aten::argmin", Light, Leaf),
    reduces!("aten::max", Light, Select),
    reduces!("aten::min", Light, Select),
    reduces!("aten::linalg_vector_norm", Medium, Norm),
    reduces!("aten::var", Medium, Moments),
    reduces!("aten::std", Medium, Moments),
    reduces!("aten::var_mean", Medium, Moments),
    reduces!("aten::std_mean", Medium, Moments),
    OpDef::leaf(&["aten::aminmax"], |call| lower(call, "aminmax", Work::Light, Form::Leaf)),
    OpDef::leaf(&["aten::equal"], |call| lower(call, "equal", Work::Light, Form::Whole)),
    OpDef::composite(&["aten::norm"]).expand(norm),
    OpDef::composite(&[
        "aten::count_nonzero",
        "aten::logsumexp",
        "aten::isin",
        "aten::trace",
        "aten::allclose",
    ]),
];

/// Meaning of the arguments after the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Dimensions, whether to keep them, type; without dimensions the op calls itself.
    Dims,
    /// One or several dimensions, whether to keep them; without dimensions over all.
    Leaf,
    /// As `Leaf`, with indices as a second return; with a second tensor it is an elementwise op.
    Select,
    /// Order, dimensions, whether to keep them.
    Norm,
    /// Dimensions, correction, whether to keep them; with a truth value as the correction the op calls itself.
    Moments,
    /// No dimensions: over all.
    Whole,
}

/// Returns the reduced dimensions, and whether they are kept.
fn dims(call: &BoundCall<'_>, form: Form) -> (Vec<usize>, bool) {
    let rank = call.tensor("self").map_or(0, |tensor| tensor.shape.len());
    if form == Form::Whole {
        return ((0..rank).collect(), false);
    }
    // A whole number is a dimension; a truth value or a type in its place belongs to a form without dimensions.
    let listed = match call.arg("dim") {
        Some(Arg::Int(dim)) => vec![*dim],
        Some(Arg::Ints(list)) => list.to_vec(),
        _ => Vec::new(),
    };
    let named: Vec<usize> = listed.into_iter().filter_map(|dim| axis(dim, rank)).collect();
    let all = named.is_empty();
    (if all { (0..rank).collect() } else { named }, call.flag("keepdim").unwrap_or(false))
}

/// Whether a call only calls its own long form, or another op.
fn is_short(call: &BoundCall<'_>, form: Form) -> bool {
    match form {
        // The second of two arguments is the number of a type.
        Form::Dims => !matches!(call.arg("dim"), Some(Arg::Ints(_))) && call.inputs.len() <= 2,
        Form::Select => call.tensor("other").is_some(),
        Form::Moments => call.inputs.len() <= 2 || matches!(call.arg("correction"), Some(Arg::Bool(_))),
        _ => false,
    }
}

fn lower(call: &BoundCall<'_>, op: &'static str, work: Work, form: Form) -> Option<Lowering> {
    if is_short(call, form) {
        return Some(Lowering::Children);
    }
    let input = call.tensor("self")?;
    let reduce = split(input, &dims(call, form).0, op, work);
    let results = shapes(call, form)?;
    let (dtype, source) = if is_widened(call, input) {
        let bytes = input.numel() * 8;
        (Dtype::I64, Operand { slot: Slot::Scratch, role: Role::Read, bytes })
    } else {
        (input.dtype, read(call, "self")?)
    };
    let other = if op == "equal" { read(call, "other") } else { None };
    let written = results.iter().enumerate().flat_map(|(ret, arg)| {
        let tensors = arg.tensors().iter();
        tensors.map(move |tensor| Some(result(call, ret as u16, &tensor.shape, tensor.dtype)))
    });
    let operands: Vec<_> = [Some(source), other].into_iter().chain(written).collect();
    Some(launches(passes(&reduce), Kernel::Reduce(reduce), dtype, operands, input.numel()))
}

/// Whether it sums small integers: then it sums a copy in 64 bits, which a child op makes.
fn is_widened(call: &BoundCall<'_>, input: &Tensor) -> bool {
    let sums = matches!(call.name.as_str(), "aten::sum" | "aten::prod");
    sums && !input.dtype.is_float() && input.dtype != Dtype::I64
}

/// Returns the sizes around the reduced dimensions, in the order of the elements in memory.
fn split(input: &Tensor, dims: &[usize], op: &'static str, work: Work) -> Reduce {
    let mut order: Vec<usize> = (0..input.shape.len()).filter(|&at| input.shape[at] != 1).collect();
    order
        .sort_by_key(|&at| std::cmp::Reverse((input.strides.get(at).copied().unwrap_or(0), input.shape[at])));
    let sizes =
        |pick: bool| order.iter().filter(move |at| dims.contains(at) == pick).map(|&at| input.shape[at]);
    let reduced = count(&sizes(true).collect::<Vec<_>>());
    let kept = count(&sizes(false).collect::<Vec<_>>());
    let inside = order.iter().rev().take_while(|at| !dims.contains(at)).map(|&at| input.shape[at]);
    let inner = if reduced == 1 { 1 } else { count(&inside.collect::<Vec<_>>()) };
    let together = order.iter().rev().skip_while(|at| !dims.contains(at)).take_while(|at| dims.contains(at));
    let run = count(&together.map(|&at| input.shape[at]).collect::<Vec<_>>());
    Reduce { op, outer: kept / inner.max(1), reduced, inner, contiguous: input.is_dense(), run, work }
}

/// Returns the launches of a reduction. The threads of a block share the elements of its outputs. If each thread would have 256 or
/// more, several blocks work on one output, and a counter of finished blocks is cleared first.
fn passes(reduce: &Reduce) -> u32 {
    let power = |n: u64| 1 << n.max(1).ilog2().min(9);
    let threads = if reduce.inner == 1 {
        let outputs: u64 = power(reduce.outer);
        power(reduce.reduced).min(512 / outputs.min(16))
    } else if reduce.inner.is_multiple_of(4) {
        128 / power(reduce.inner / 4).min(32)
    } else {
        512 / power(reduce.inner).min(32)
    };
    if reduce.reduced / threads >= 256 { 2 } else { 1 }
}

fn shapes(call: &BoundCall<'_>, form: Form) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    if form == Form::Whole {
        return Some(vec![Arg::Bool(true)]);
    }
    let (dims, keep) = dims(call, form);
    let mut reduced = vec![false; input.shape.len()];
    // A scalar has no dimension to reduce, even if the arguments name one.
    for at in dims {
        if let Some(slot) = reduced.get_mut(at) {
            *slot = true;
        }
    }
    let kept = input.shape.iter().zip(reduced).filter_map(|(&size, reduced)| match (reduced, keep) {
        (false, _) => Some(size),
        (true, true) => Some(1),
        (true, false) => None,
    });
    let shape: Vec<i64> = kept.collect();
    let name = call.name.strip_prefix("aten::")?;
    let dtype = match name {
        "any" | "all" => Dtype::Bool,
        "argmax" | "argmin" => Dtype::I64,
        "sum" | "prod" | "nansum" if !input.dtype.is_float() => Dtype::I64,
        _ => input.dtype,
    };
    let tensor = |dtype| Arg::Tensor(Tensor::contiguous(&shape, dtype));
    let mut outputs = vec![tensor(dtype)];
    if form == Form::Select && matches!(call.arg("dim"), Some(Arg::Int(_))) {
        outputs.push(tensor(Dtype::I64));
    } else if matches!(name, "var_mean" | "std_mean" | "aminmax") {
        outputs.push(tensor(dtype));
    }
    Some(outputs)
}

/// Returns the call of the long form by a short one, or the copy for a sum of small integers.
fn long_form(call: &BoundCall<'_>, form: Form) -> Vec<OpCall> {
    let Some(input) = call.tensor("self") else { return Vec::new() };
    if !is_short(call, form) {
        let wide = Tensor::contiguous(&input.shape, Dtype::I64);
        return if is_widened(call, input) { vec![copied(&wide, input)] } else { Vec::new() };
    }
    let (name, inputs) = match form {
        Form::Select => (
            if call.name == "aten::max" { "aten::maximum" } else { "aten::minimum" },
            vec![call.arg_or_none("self"), call.arg_or_none("other")],
        ),
        Form::Moments => {
            let whole = call.inputs.len() <= 2;
            let biased = call.flag(if whole { "unbiased" } else { "correction" }) == Some(false);
            let (dims, keep) = if whole {
                (Arg::None, Arg::Bool(false))
            } else {
                (call.arg_or_none("dim"), call.arg_or_none("keepdim"))
            };
            (call.name.as_str(), vec![call.arg_or_none("self"), dims, Arg::Int(i64::from(!biased)), keep])
        }
        _ => (
            call.name.as_str(),
            vec![
                call.arg_or_none("self"),
                Arg::Ints([].into_iter().collect()),
                Arg::Bool(false),
                call.arg_or_none("dtype"),
            ],
        ),
    };
    vec![OpCall { outputs: call.outputs.clone(), settings: call.settings, ..OpCall::new(name, inputs) }]
}

fn norm(call: &BoundCall<'_>) -> Vec<OpCall> {
    let arg = |name: &str, default| call.arg(name).cloned().unwrap_or(default);
    let inputs = vec![
        arg("self", Arg::None),
        arg("p", Arg::Int(2)),
        arg("dim", Arg::None),
        arg("keepdim", Arg::Bool(false)),
        arg("dtype", Arg::None),
    ];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::linalg_vector_norm", inputs) }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    fn call(name: &str, tensor: Tensor, rest: Vec<Arg>) -> OpCall {
        let mut inputs = vec![Arg::Tensor(tensor)];
        inputs.extend(rest);
        OpCall::new(name, inputs)
    }

    fn ints(list: &[i64]) -> Arg {
        Arg::Ints(list.into())
    }

    fn reduce(call: &OpCall) -> (Reduce, u32, Vec<u64>) {
        let Lowering::Kernel(call) = OpSet::standard().lower(call) else { panic!("no kernel") };
        let Kernel::Reduce(reduce) = call.kernel else { panic!("another kernel") };
        (reduce, call.launches, call.operands.iter().map(|operand| operand.bytes).collect())
    }

    #[test]
    fn a_bias_gradient_sums_over_the_batch() {
        let grad = Tensor::contiguous(&[2048, 512], Dtype::F32);
        let (sum, launches, bytes) =
            reduce(&call("aten::sum", grad, vec![ints(&[0]), Arg::Bool(true), Arg::None]));
        assert_eq!((sum.outer, sum.reduced, sum.inner), (1, 2048, 512));
        assert_eq!((launches, bytes), (2, vec![2048 * 512 * 4, 512 * 4]));
    }

    #[test]
    fn dimensions_may_lie_apart() {
        let images = Tensor::contiguous(&[8, 16, 32, 32], Dtype::F32);
        let (sum, launches, _) = reduce(&call("aten::sum", images, vec![ints(&[0, 2, 3]), Arg::Bool(false)]));
        assert_eq!((sum.outer, sum.reduced, sum.inner, sum.run, launches), (16, 8192, 1, 1024, 2));
    }

    #[test]
    fn no_dimensions_are_all_and_one_of_size_one_is_still_reduced() {
        let column = Tensor::contiguous(&[2048, 1], Dtype::F32);
        let whole = call("aten::mean", column.clone(), vec![ints(&[]), Arg::Bool(false), Arg::None]);
        assert_eq!(reduce(&whole).0.reduced, 2048);
        let one = call("aten::sum", column, vec![ints(&[1]), Arg::Bool(true), Arg::None]);
        let (sum, _, bytes) = reduce(&one);
        assert_eq!((sum.outer, sum.reduced), (2048, 1));
        assert_eq!(bytes, [8192, 8192]);
    }

    #[test]
    fn the_short_form_calls_the_long_one() {
        let short = call("aten::sum", Tensor::contiguous(&[64], Dtype::F32), vec![Arg::None]);
        assert_eq!(OpSet::standard().lower(&short), Lowering::Children);
        let long = OpSet::standard().expand(&short);
        assert!(matches!(OpSet::standard().lower(&long[0]), Lowering::Kernel(_)));
        let max = call("aten::max", Tensor::contiguous(&[64], Dtype::F32), vec![]);
        assert!(matches!(OpSet::standard().lower(&max), Lowering::Kernel(_)));
    }

    #[test]
    fn truth_values_are_summed_in_64_bits() {
        let mask = Tensor::contiguous(&[512, 300], Dtype::Bool);
        let (_, _, bytes) = reduce(&call("aten::sum", mask, vec![ints(&[1]), Arg::Bool(false), Arg::None]));
        assert_eq!(bytes, [512 * 300 * 8, 512 * 8]);
    }
}
