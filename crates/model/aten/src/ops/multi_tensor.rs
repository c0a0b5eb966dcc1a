//! Ops over a list of tensors: the foreach ops and the fused optimizers.
//!
//! They process the lists in chunks of 65,536 elements; a launch takes a limited number of tensors and of chunks.

mod split;

pub(crate) use self::split::CHUNK;
use self::split::{Split, split};
use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, unknown, work, zeros};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Elementwise, Kernel, Layout, MultiTensor, Operand, Role, Slot, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{self, operand};

/// Defines foreach ops, each with its in-place form, by the cost of an element.
macro_rules! foreach {
    ($($work:ident [$($name:literal)+])+) => {
        /// Definitions of the foreach ops.
        pub static OPS: &[OpDef] = &[$($(
            OpDef::leaf(&[concat!("aten::_foreach_", $name)], |call| {
                lower(call, concat!("_foreach_", $name), Work::$work, Form::New)
            })
            .outputs(like_first),
            OpDef::leaf(&[concat!("aten::_foreach_", $name, "_")], |call| {
                lower(call, concat!("_foreach_", $name, "_"), Work::$work, Form::InPlace)
            }),
        )+)+];
    };
}

foreach! {
    Light ["abs" "add" "sub" "mul" "addcmul" "lerp" "neg" "sign" "maximum" "minimum" "clamp_max" "clamp_min"
        "ceil" "floor" "round" "trunc" "frac"]
    Medium ["div" "addcdiv" "sqrt" "rsqrt" "reciprocal" "exp" "log" "log2" "log10" "sigmoid" "tanh" "expm1"
        "log1p" "sin" "cos" "tan" "sinh" "cosh" "asin" "acos" "atan"]
    Heavy ["pow" "erf" "erfc" "lgamma"]
}

/// Defines an op with its own form.
macro_rules! own {
    ($name:literal, $work:ident, $form:ident) => {
        OpDef::leaf(&[$name], |call| lower(call, &$name[6..], Work::$work, Form::$form))
    };
}

/// Ops over lists with other forms.
pub static OTHERS: &[OpDef] = &[
    own!("aten::_foreach_zero_", Light, Fill),
    own!("aten::_foreach_copy_", Light, Fill),
    own!("aten::_foreach_copy", Light, New),
    OpDef::leaf(&["aten::_foreach_norm"], |call| lower(call, "_foreach_norm", Work::Light, Form::Norm))
        .expand(partial_norms),
    own!("aten::_foreach_max", Light, Norm),
    own!("aten::_fused_adam_", Medium, Optimizer),
    own!("aten::_fused_adamw_", Medium, Optimizer),
    own!("aten::_fused_sgd_", Light, Optimizer),
    own!("aten::_fused_adagrad_", Medium, Optimizer),
    own!("aten::_amp_foreach_non_finite_check_and_unscale_", Light, InPlace),
    OpDef::leaf(&["aten::_amp_update_scale_", "aten::_assert_async"], single),
];

/// Returns the zeros for the norms of the chunks. Every tensor gets as many as the largest one has chunks.
fn partial_norms(call: &BoundCall<'_>) -> Vec<OpCall> {
    let tensors = call.tensors("self");
    let Some(first) = tensors.first() else { return Vec::new() };
    let most = tensors.iter().map(|tensor| tensor.numel().div_ceil(CHUNK)).max().unwrap_or(0);
    let partial = (tensors.len() as u64).saturating_mul(most.max(1));
    vec![zeros(&[i64::try_from(partial).unwrap_or(i64::MAX)], first.dtype)]
}

/// Access to the lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All are read; a new list is returned.
    New,
    /// The first is updated, the others are read.
    InPlace,
    /// The first is written, the others are read.
    Fill,
    /// The first is read; one number per tensor is returned.
    Norm,
    /// Parameters, gradients, states, step counts: all but the gradients are updated.
    Optimizer,
}

fn lower(call: &BoundCall<'_>, op: &'static str, cost: Work, form: Form) -> Option<Lowering> {
    // Long lists are missing in some recordings.
    let Some(first) = lists(call).next().map(|(_, list)| list) else { return Some(unknown(call)) };
    if !is_fast(call) {
        return Some(Lowering::Children);
    }
    let (numel, largest) = first.iter().fold((0, 0), |(sum, most): (u64, u64), tensor| {
        (sum.saturating_add(tensor.numel()), most.max(tensor.numel()))
    });
    if numel == 0 {
        return Some(Lowering::Nothing);
    }
    let outputs = matches!(form, Form::New);
    // Step counts and other single numbers do not count as lists.
    let wide = lists(call).filter(|(_, list)| total(list.iter().map(Tensor::numel)) == numel).count() as u64;
    let chunks = total(first.iter().map(|tensor| tensor.numel().div_ceil(CHUNK)));
    let lists = wide + u64::from(outputs);
    let Split { launches: count, serial } = split(first, lists);
    let kernel =
        MultiTensor { op, tensors: first.len() as u64, lists, numel, largest, chunks, serial, work: cost };
    let written = written(call, first, form);
    let operands = reads(call, form).chain(written).map(Some);
    let (count, kernel) = match form {
        Form::Optimizer if call.settings.runtime && cost == Work::Light => (1, one_pass(numel, lists, cost)),
        Form::Optimizer if call.settings.runtime => (1, Kernel::MultiTensor(kernel)),
        _ => (count, Kernel::MultiTensor(kernel)),
    };
    Some(launches(
        count.saturating_add(u32::from(form == Form::Norm)),
        kernel,
        first[0].dtype,
        operands,
        flops(op).saturating_mul(numel),
    ))
}

/// Plain SGD of `steptime-runtime`: one launch over all parameters. Others are limited by their many streams of memory, as PyTorch's are.
fn one_pass(numel: u64, lists: u64, work: Work) -> Kernel {
    let inputs = u32::try_from(lists).unwrap_or(u32::MAX);
    Kernel::Elementwise(Elementwise { op: "add", work, numel, inputs, layout: Layout::Vectorized })
}

/// Whether one kernel processes all lists. Lists of other shapes, sparse tensors and tensors in host memory are processed tensor by
/// tensor with the plain op.
fn is_fast(call: &BoundCall<'_>) -> bool {
    let Some(first) = lists(call).next().map(|(_, list)| list) else { return false };
    let optimizer = call.name.starts_with("aten::_fused_");
    lists(call).all(|(_, list)| {
        let same =
            list.len() == first.len() && list.iter().zip(first).all(|(own, first)| own.shape == first.shape);
        let dense = list.iter().all(|tensor| tensor.is_dense() && !tensor.is_sparse());
        dense && (same || optimizer)
    })
}

/// Returns the arguments that are lists of tensors with elements.
fn lists(call: &OpCall) -> impl Iterator<Item = (usize, &[Tensor])> {
    call.inputs.iter().enumerate().filter_map(|(arg, input)| match input {
        Arg::Tensors(list) if list.iter().any(|tensor| tensor.numel() > 0) => Some((arg, list.as_slice())),
        _ => None,
    })
}

/// Returns the launches of an op in which one thread works on a few numbers.
fn single(call: &BoundCall<'_>) -> Option<Lowering> {
    let elements =
        Elementwise { op: "single", work: Work::Light, numel: 1, inputs: 1, layout: Layout::Vectorized };
    let read = operands::inputs(call).into_iter().map(Some);
    Some(work(Kernel::Elementwise(elements), call.tensor("self")?.dtype, read, 0))
}

fn reads(call: &BoundCall<'_>, form: Form) -> impl Iterator<Item = Operand> {
    let role = move |arg: usize| match (form, arg) {
        (Form::InPlace, 0) => Role::Update,
        (Form::Fill, 0) => Role::Write,
        (Form::Optimizer, arg) if arg != 1 => Role::Update,
        _ => Role::Read,
    };
    let tensors =
        lists(call).flat_map(|(arg, list)| list.iter().enumerate().map(move |(at, t)| (arg, at, t)));
    tensors.map(move |(arg, at, tensor)| operand(Slot::Input(arg as u16, at as u16), role(arg), tensor))
}

fn written(call: &BoundCall<'_>, first: &[Tensor], form: Form) -> Vec<Operand> {
    let bytes = |tensor: &Tensor| match form {
        Form::New => Some(tensor.bytes()),
        Form::Norm => Some(tensor.dtype.size()),
        _ => None,
    };
    let recorded = call.outputs.first().map_or(&[][..], Arg::tensors);
    let all = first.iter().enumerate().filter_map(|(at, tensor)| {
        let bytes =
            recorded.get(at).map_or_else(|| bytes(tensor), |own| bytes(tensor).map(|_| own.bytes()))?;
        Some(Operand { slot: Slot::Output(0, at as u16), role: Role::Write, bytes })
    });
    all.collect()
}

/// Returns the sum of any number of sizes, saturating.
fn total(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Returns the arithmetic operations per element.
fn flops(op: &str) -> u64 {
    match op {
        "_foreach_zero_" | "_foreach_copy_" | "_foreach_copy" => 0,
        "_foreach_addcmul" | "_foreach_addcmul_" | "_foreach_addcdiv" | "_foreach_addcdiv_" => 3,
        "_foreach_lerp" | "_foreach_lerp_" => 3,
        "_foreach_norm" => 2,
        "_fused_sgd_" => 6,
        "_fused_adagrad_" => 8,
        "_fused_adam_" | "_fused_adamw_" => 14,
        _ => 1,
    }
}

fn like_first(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let tensors = call.tensors("self").iter().map(|tensor| Tensor { offset: 0, ..tensor.clone() });
    Some(vec![Arg::Tensors(tensors.collect())])
}

#[cfg(test)]
mod tests {
    use super::split::CHUNKS;
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::F32;

    fn list(count: usize, numel: i64) -> Arg {
        Arg::Tensors(vec![Tensor::contiguous(&[numel], F32); count])
    }

    fn kernel(name: &str, inputs: Vec<Arg>) -> (MultiTensor, u32, u64) {
        let Lowering::Kernel(call) = OpSet::standard().lower(&OpCall::new(name, inputs)) else {
            panic!("no kernel")
        };
        let footprint = call.footprint();
        let Kernel::MultiTensor(kernel) = call.kernel else { panic!("another kernel") };
        (kernel, call.launches, footprint)
    }

    /// Counts recorded on an H200.
    #[test]
    fn a_launch_takes_so_many_tensors_and_chunks() {
        assert_eq!(kernel("aten::_foreach_add_", vec![list(400, 64), list(400, 64), Arg::Int(1)]).1, 7);
        assert_eq!(kernel("aten::_foreach_mul_", vec![list(400, 64), Arg::Float(0.5)]).1, 4);
        let big = 50_000_000;
        assert_eq!(kernel("aten::_foreach_add_", vec![list(1, big), list(1, big), Arg::Int(1)]).1, 3);
        assert_eq!(
            kernel("aten::_foreach_addcdiv_", vec![list(200, 640), list(200, 640), list(200, 640)]).1,
            5
        );
    }

    #[test]
    fn each_launch_waits_for_its_longest_chunk() {
        let mut tensors = vec![Tensor::contiguous(&[100], F32); 150];
        tensors[10] = Tensor::contiguous(&[70_000], F32);
        tensors.push(Tensor::contiguous(&[3000], F32));
        let (kernel, launches, _) =
            kernel("aten::_foreach_mul_", vec![Arg::Tensors(tensors), Arg::Float(0.5)]);
        assert_eq!((launches, kernel.serial, kernel.chunks), (2, 65_536 + 3000, 152));
    }

    #[test]
    fn launches_of_a_huge_tensor_are_counted_at_once() {
        let of = |numel: i64| split(&[Tensor::contiguous(&[numel], F32), Tensor::contiguous(&[5], F32)], 2);
        // Chunk by chunk: 320 per launch, the rest together with the second tensor.
        let launch = (CHUNK * CHUNKS) as i64;
        for (numel, launches, serial) in
            [(3 * launch, 4, 3 * CHUNK + 5), (3 * launch + 1, 4, 3 * CHUNK + 5), (launch - 1, 2, CHUNK + 5)]
        {
            let split = of(numel);
            assert_eq!((split.launches, split.serial), (launches, serial), "{numel}");
        }
        assert!(of(1 << 62).launches > 1 << 30);
    }

    #[test]
    fn lists_of_any_size_are_counted() {
        let huge = || list(64, i64::MAX);
        let (kernel, launches, _) = kernel("aten::_foreach_add_", vec![huge(), huge(), Arg::Int(1)]);
        assert_eq!((kernel.numel, kernel.largest, launches), (u64::MAX, i64::MAX as u64, u32::MAX));
        // A small tensor first, so that no launch begins with the huge one.
        let sizes = [5, 1 << 62, 5, 1 << 62].map(|numel| Tensor::contiguous(&[numel], F32));
        assert_eq!(split(&sizes, 2).launches, u32::MAX);
    }

    #[test]
    fn a_fused_adam_goes_over_four_lists() {
        let steps = Arg::Tensors(vec![Tensor::contiguous(&[], F32); 3]);
        let inputs =
            vec![list(3, 1000), list(3, 1000), list(3, 1000), list(3, 1000), Arg::Tensors(vec![]), steps];
        let (adam, launches, footprint) = kernel("aten::_fused_adam_", inputs);
        assert_eq!((adam.lists, adam.tensors, adam.numel, launches), (4, 3, 3000, 1));
        assert_eq!(footprint, 4 * 3000 * 4 + 12);
    }

    #[test]
    fn lists_that_were_not_recorded_are_flagged() {
        let call = OpCall::new("aten::_foreach_add_", vec![Arg::Tensors(vec![]), Arg::None, Arg::Int(1)]);
        assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)));
    }
}
