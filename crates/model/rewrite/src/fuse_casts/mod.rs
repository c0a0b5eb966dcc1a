//! Casts between 32 and 16 bits, done by the kernels beside them.
//!
//! Autocast casts with ops of their own. Our operators and the products read and write both types, so the tensor before a cast gets the type of the
//! one behind it, or the reverse, where all other ops on its memory take that type too. Casts of parameters become one op over lists.

mod cast;
mod op_types;
mod parameters;
mod shared_memory;
mod types;

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Dtype, Tensor};
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use self::cast::Cast;
use self::types::Types;
use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Prefix of our operators.
const OWN: &str = "steptime::";

/// Removes the casts of autocast beside kernels that read and write 16 bits themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct FuseCasts;

impl Rule for FuseCasts {
    fn name(&self) -> &'static str {
        "fuse-casts"
    }

    fn stage(&self) -> Stage {
        Stage::Casts
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, large: kernels that read and write both types"
    }

    fn risk(&self) -> &'static str {
        "looked-up rows and their interaction are rounded to 8 bits of mantissa; gradients of parameters are no longer rounded"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        let text = "kernels that read one type and write another are priced as those of one type";
        Some((text, 0.05))
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let nothing = |reason: &str| Error::NothingToDo { reason: reason.to_owned() };
        let casts = cast::find(step);
        if casts.is_empty() {
            return Err(nothing("no op casts between f32 and bf16: it follows bf16"));
        }
        if !step.running().into_iter().any(|op| step.ops[op].name.starts_with(OWN)) {
            return Err(nothing("PyTorch's ops do not read and write both types: it follows operators"));
        }
        let mut types = Types::find(step, &casts);
        for cast in &casts {
            types.fuse(cast);
        }
        types.narrow_parts();
        let (fused, left): (Vec<Cast>, Vec<Cast>) =
            casts.into_iter().partition(|cast| types.dtype(cast.from) == types.dtype(cast.to));
        let mut patch = Patch::new(self.name());
        types.reshape(&mut patch);
        let replaced = fused.iter().map(|cast| (cast.to, cast.from)).collect();
        patch.remove.extend(fused.iter().map(|cast| cast.outermost(step)));
        replace(step, &mut patch, &replaced);
        let listed = parameters::listed(step, &left, &mut patch);
        if patch.is_empty() {
            return Err(nothing("the ops beside the casts take one type only"));
        }
        patch.why = format!("{} fused into the kernels beside them", counted(fused.len(), "cast", "casts"));
        if listed > 0 {
            patch.why += &format!("; {listed} casts of parameters become one op");
        }
        match left.len() - listed {
            0 => {}
            rest => patch.why += &format!("; {rest} unchanged"),
        }
        Ok(vec![patch])
    }
}

/// Replaces results of fused casts by their sources in all ops that remain.
fn replace(step: &StepIr, patch: &mut Patch, replaced: &FxHashMap<TensorId, TensorId>) {
    let source = |mut tensor: TensorId| {
        while let Some(&from) = replaced.get(&tensor) {
            tensor = from;
        }
        tensor
    };
    let gone = |op: OpId| step.around(op).any(|around| patch.remove.contains(&around));
    let mut changed = Vec::new();
    for op in step.running() {
        let Some(call) = step.ops[op].call.as_deref().filter(|_| !gone(op)) else { continue };
        if call.takes().chain(call.gives()).any(|tensor| replaced.contains_key(&tensor)) {
            changed.push((op, call.with(&mut |tensor| source(tensor))));
        }
    }
    patch.change.extend(changed);
}

/// The tensor at an argument position.
fn tensor(args: &[Arg<TensorId>], at: usize) -> Option<TensorId> {
    match args.get(at) {
        Some(Arg::Tensor(tensor)) => Some(*tensor),
        _ => None,
    }
}

/// A tensor in another type.
fn in_type(value: &Tensor, dtype: Dtype) -> Tensor {
    Tensor { dtype, ..value.clone() }
}

/// All tensors of a call.
fn all(call: &Call) -> impl Iterator<Item = TensorId> {
    call.takes().chain(call.gives())
}
