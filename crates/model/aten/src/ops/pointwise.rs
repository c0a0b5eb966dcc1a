//! Common rules of all elementwise ops: one rule per row of their tables.

use smallvec::SmallVec;

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::child_calls::{child, wrapped};
use crate::dtype::Dtype;
use crate::kernel::{Elementwise, Kernel, Work};
use crate::layout;
use crate::op_def::Lowering;
use crate::operands::{in_place, out_arg, read_at, result};

/// Rule for computing the elements of an op.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Base name of the op.
    pub op: &'static str,
    /// Cost of an element.
    pub work: Work,
    /// Number of leading arguments that hold input tensors; later ones are written.
    pub inputs: usize,
    /// Whether results are truth values.
    pub truth: bool,
    /// Whether the kernel is written for operands of different types; any other converts them when loading.
    pub mixed: bool,
    /// Whether a call with a plain number calls the op again, with the number as a tensor.
    pub wraps: bool,
    /// Whether a call that returns a new tensor calls the op again, with that tensor to write.
    pub calls_out: bool,
    /// Whether the in-place form only writes its first argument, and does not read it.
    pub writes: bool,
}

impl Rule {
    /// Returns a rule without special properties.
    #[must_use]
    pub const fn new(op: &'static str, work: Work, inputs: usize) -> Rule {
        let (truth, mixed, wraps, calls_out, writes) = (false, false, false, false, false);
        Rule { op, work, inputs, truth, mixed, wraps, calls_out, writes }
    }

    /// Sets truth values as results.
    #[must_use]
    pub const fn truth(self) -> Rule {
        Rule { truth: true, mixed: true, ..self }
    }

    /// Sets a kernel for operands of different types.
    #[must_use]
    pub const fn mixed(self) -> Rule {
        Rule { mixed: true, ..self }
    }

    /// Sets that numbers are wrapped into tensors by a second call.
    #[must_use]
    pub const fn wraps(self) -> Rule {
        Rule { wraps: true, ..self }
    }

    /// Sets that new results are created by a second call.
    #[must_use]
    pub const fn calls_out(self) -> Rule {
        Rule { calls_out: true, ..self }
    }

    /// Sets that the first argument is only written.
    #[must_use]
    pub const fn writes(self) -> Rule {
        Rule { writes: true, ..self }
    }
}

/// Defines a list of ops, one row each: base name, cost, input tensors, special properties, gradient, names.
macro_rules! rows {
    ($($op:literal $work:ident $inputs:literal [$($more:ident)*] $(($gradient:expr))?: $($name:literal)+;)*) => {
        /// Elementwise ops of this file.
        pub static OPS: &[crate::op_def::OpDef] = &[$({
            const RULE: crate::ops::pointwise::Rule =
                crate::ops::pointwise::Rule::new($op, crate::kernel::Work::$work, $inputs)$(.$more())*;
            crate::op_def::OpDef::leaf(&[$($name),+], |call| crate::ops::pointwise::lower(call, &RULE))
                .outputs(|call| crate::ops::pointwise::outputs(call, &RULE))
                .expand(|call| crate::ops::pointwise::expand(call, &RULE))
                $(.backward($gradient))?
        }),*];
    };
}
pub(crate) use rows;

/// Returns the input tensors of a call, with their arguments. Numbers that were wrapped into tensors are passed to the kernel as
/// numbers: tensors without dimensions on the host, or, if no device is recorded, those in any argument after the first.
fn sources<'a>(call: &'a OpCall, rule: &Rule) -> SmallVec<[(usize, &'a Tensor); 4]> {
    let first = usize::from(rule.writes && in_place(call));
    let number = |arg: usize, tensor: &Tensor| match tensor.device {
        Device::Cpu | Device::Pinned => tensor.shape.is_empty(),
        Device::Unknown => tensor.shape.is_empty() && arg > 0,
        Device::Cuda => false,
    };
    let tensors = (first..rule.inputs).filter_map(|arg| Some((arg, call.tensor_at(arg)?)));
    tensors.filter(|&(arg, tensor)| !number(arg, tensor)).collect()
}

/// Returns the result of a call whose operands are `tensors`.
fn computed(call: &BoundCall<'_>, rule: &Rule, tensors: &[(usize, &Tensor)]) -> Option<Tensor> {
    let mut shape: SmallVec<[i64; 5]> = SmallVec::new();
    for (_, tensor) in tensors {
        let longer = tensor.shape.len().saturating_sub(shape.len());
        shape.insert_many(0, std::iter::repeat_n(1, longer));
        let skipped = shape.len() - tensor.shape.len();
        for (own, &size) in shape[skipped..].iter_mut().zip(&tensor.shape) {
            if *own == 1 {
                *own = size;
            }
        }
    }
    let types = tensors.iter().map(|(_, tensor)| tensor.dtype).filter(|_| !rule.truth);
    let types = types.collect::<SmallVec<[Dtype; 4]>>();
    let dtype = if rule.truth { Some(Dtype::Bool) } else { types.iter().copied().reduce(promote) };
    let dtype = dtype.or_else(|| call.tensor_at(0).map(|tensor| tensor.dtype))?;
    let model = tensors.iter().find(|(_, tensor)| tensor.shape == shape && !tensor.is_sparse());
    Some(match model {
        Some((_, model)) if model.is_dense() => {
            Tensor { dtype, device: Device::Cuda, offset: 0, ..(*model).clone() }
        }
        _ => Tensor::contiguous(&shape, dtype),
    })
}

/// Returns the type of a result from two types: the wider one, except for bool and types of different kinds.
fn promote(a: Dtype, b: Dtype) -> Dtype {
    match (a.is_float(), b.is_float()) {
        (true, false) => a,
        (false, true) => b,
        _ if a == Dtype::Bool => b,
        _ if b.size() > a.size() => b,
        (true, true) if a.size() == 2 && b.size() == 2 && a != b => Dtype::F32,
        _ => a,
    }
}

/// Whether a call makes a second call with its numbers wrapped into tensors.
fn wraps(call: &BoundCall<'_>, rule: &Rule) -> bool {
    let number = |arg: &Arg| matches!(arg, Arg::Int(_) | Arg::Float(_) | Arg::Bool(_));
    rule.wraps && call.inputs.iter().take(rule.inputs.max(2)).any(number)
}

/// Whether a call makes a second call with a tensor to write.
fn calls_out(call: &BoundCall<'_>, rule: &Rule) -> bool {
    rule.calls_out && out_arg(call, rule.inputs).is_none()
}

/// Returns the second call that a call makes, if any.
#[must_use]
pub fn expand(call: &BoundCall<'_>, rule: &Rule) -> Vec<OpCall> {
    let mut inputs = call.inputs.clone();
    if wraps(call, rule) {
        inputs.iter_mut().take(rule.inputs.max(2)).for_each(|arg| *arg = wrapped(arg));
    } else if calls_out(call, rule) {
        inputs.extend(outputs(call, rule).unwrap_or_default());
    } else {
        return Vec::new();
    }
    vec![child(call, &call.name, inputs)]
}

/// Returns the launches of a call of an elementwise op.
#[must_use]
pub fn lower(call: &BoundCall<'_>, rule: &Rule) -> Option<Lowering> {
    if wraps(call, rule) || calls_out(call, rule) {
        return Some(Lowering::Children);
    }
    let tensors = sources(call, rule);
    // Sparse operands are decomposed by other ops.
    if call.input_tensors().any(|(_, _, tensor)| tensor.is_sparse()) {
        return Some(Lowering::Children);
    }
    let computed = computed(call, rule, &tensors)?;
    let (mut target, output) = result(call, rule.inputs, computed);
    if output.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    if rule.writes && in_place(call) {
        target.role = crate::kernel::Role::Write;
    }
    let updates = in_place(call) && !rule.writes;
    let operands: SmallVec<[&Tensor; 4]> = tensors.iter().map(|&(_, tensor)| tensor).collect();
    let place = if rule.mixed { layout::natural } else { layout::elementwise };
    let kernel = Kernel::Elementwise(Elementwise {
        op: rule.op,
        work: rule.work,
        numel: output.numel(),
        inputs: operands.len() as u32,
        layout: place(&output, &operands),
    });
    let dtype = operands.iter().find(|tensor| tensor.dtype != Dtype::Bool).map_or(output.dtype, |t| t.dtype);
    let reads =
        tensors.iter().filter(|&&(arg, _)| !(updates && arg == 0)).map(|&(arg, _)| read_at(call, arg));
    Some(work(kernel, dtype, reads.chain([Some(target)]), output.numel()))
}

/// Returns the results of a call of an elementwise op.
#[must_use]
pub fn outputs(call: &BoundCall<'_>, rule: &Rule) -> Option<Vec<Arg>> {
    let computed = computed(call, rule, &sources(call, rule))?;
    Some(vec![Arg::Tensor(result(call, rule.inputs, computed).1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::{Bool, F32, I64};
    use crate::OpSet;
    use crate::kernel::{Layout, Role, Slot};

    fn dense(shape: &[i64], dtype: Dtype) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, dtype))
    }

    fn lowered(name: &str, inputs: Vec<Arg>) -> (Elementwise, crate::KernelCall) {
        let lowered = OpSet::standard().lower(&OpCall::new(name, inputs));
        let Some(call) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Elementwise(kernel) = call.kernel else { panic!("{call:?}") };
        (kernel, call.clone())
    }

    #[test]
    fn an_addition_with_a_broadcast_bias() {
        let inputs = vec![dense(&[64, 100], F32), dense(&[100], F32), Arg::Int(1)];
        let (kernel, call) = lowered("aten::add", inputs);
        assert_eq!((kernel.numel, kernel.inputs), (6400, 2));
        assert!(matches!(kernel.layout, Layout::Strided { broadcast: true, .. }));
        assert_eq!((call.bytes_read(), call.bytes_written()), (4 * 6500, 4 * 6400));
    }

    #[test]
    fn in_place_updates_the_first_argument() {
        let inputs = vec![dense(&[64], F32), dense(&[64], F32), Arg::Float(-0.1)];
        let (kernel, call) = lowered("aten::add_", inputs);
        assert_eq!((kernel.inputs, kernel.layout), (2, Layout::Vectorized));
        let roles: Vec<_> = call.operands.iter().map(|o| (o.slot, o.role)).collect();
        assert_eq!(roles, [(Slot::Input(1, 0), Role::Read), (Slot::Input(0, 0), Role::Update)]);
    }

    #[test]
    fn a_number_is_wrapped_by_a_second_call() {
        let first = OpCall::new("aten::mul", vec![dense(&[36], I64), Arg::Int(9)]);
        assert_eq!(OpSet::standard().lower(&first), Lowering::Children);
        let mut number = Tensor::contiguous(&[], I64);
        number.device = Device::Cpu;
        let (kernel, call) = lowered("aten::mul", vec![dense(&[36], F32), Arg::Tensor(number)]);
        assert_eq!((kernel.inputs, kernel.layout), (1, Layout::Vectorized));
        assert_eq!(call.footprint(), 2 * 36 * 4);
    }

    #[test]
    fn comparisons_give_truth_values() {
        let (kernel, call) = lowered("aten::gt", vec![dense(&[128], F32), Arg::Int(0)]);
        assert_eq!((kernel.layout, call.bytes_written(), call.dtype), (Layout::Vectorized, 128, F32));
        let mixed = OpCall::new("aten::mul", vec![dense(&[8], Bool), dense(&[8], I64)]);
        assert_eq!(OpSet::standard().outputs(&mixed).map(|out| out[0].tensors()[0].dtype), Some(I64));
    }

    #[test]
    fn fills_read_nothing() {
        let (kernel, call) = lowered("aten::fill_", vec![dense(&[128], F32), Arg::Int(0)]);
        assert_eq!((kernel.inputs, call.bytes_read(), call.bytes_written()), (0, 0, 512));
    }

    #[test]
    fn without_elements_nothing_is_launched() {
        let call = OpCall::new("aten::neg", vec![dense(&[0, 4], F32)]);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Nothing);
    }
}
