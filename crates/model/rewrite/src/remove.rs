//! Removal of ops from a step.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use crate::counted::counted;
use crate::error::Error;
use crate::passes::Passes;
use crate::repeated_tensors::calls;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;
use crate::selection::Selection;

/// The function that accumulates a parameter's gradient.
const ACCUMULATE: &str = "AccumulateGrad";

/// Removes ops, and the backward functions that compute gradients through them. Consumers of a removed output take an input of the removed op of the
/// same shape and type instead, or else a tensor from before the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remove {
    /// The ops to remove.
    pub ops: Vec<Selection>,
}

impl Rule for Remove {
    fn name(&self) -> &'static str {
        "remove"
    }

    fn stage(&self) -> Stage {
        Stage::Removal
    }

    fn effort(&self) -> &'static str {
        "small where no other op needs their results"
    }

    fn risk(&self) -> &'static str {
        "the model changes; the result shows the cost of the ops"
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let chosen = Selection::find(&self.ops, step, facts)?;
        let mut patch = Patch::new(self.name());
        let gone = RemovedOps::find(step, &chosen);
        if step.running().iter().all(|op| gone.ops.contains(op) || step.ops[*op].annotation) {
            return Err(Error::NothingToDo { reason: "no op of the step would be left".to_owned() });
        }
        let others = gone.replaced(step, &mut patch);
        for op in step.running() {
            let Some(call) = step.ops[op].call.as_deref().filter(|_| !gone.ops.contains(&op)) else {
                continue;
            };
            if call.takes().chain(call.gives()).any(|tensor| others.contains_key(&tensor)) {
                let now = call.with(&mut |tensor| others.get(&tensor).copied().unwrap_or(tensor));
                patch.change.push((op, now));
            }
        }
        patch.why = why(step, &chosen, &gone);
        patch.remove = gone.roots;
        Ok(vec![patch])
    }
}

/// Removed ops.
struct RemovedOps {
    /// The outermost ops, the chosen ones first.
    roots: Vec<OpId>,
    /// All ops, including those inside.
    ops: FxHashSet<OpId>,
}

impl RemovedOps {
    /// Chosen ops, the backward functions that differentiate them, and the functions that accumulate the gradients of these.
    fn find(step: &StepIr, chosen: &[OpId]) -> RemovedOps {
        let mut gone = RemovedOps { roots: Vec::new(), ops: FxHashSet::default() };
        chosen.iter().for_each(|&op| gone.add(step, op));
        let passes = Passes::find(step);
        // A function differentiates the last op with its sequence number.
        let mut numbered: FxHashMap<i64, OpId> = FxHashMap::default();
        for &unit in &passes.forward {
            numbered
                .extend(step.subtree(unit).into_iter().filter_map(|op| Some((step.ops[op].sequence?, op))));
        }
        for &function in passes.backward.iter().filter(|function| step.ops[**function].again.is_none()) {
            let inside = step.subtree(function);
            let number = inside.iter().find_map(|&op| step.ops[op].sequence);
            let differentiated = number.and_then(|number| numbered.get(&number));
            let adds_up = || {
                let mut taken = calls(step, function).flat_map(|call| call.takes()).peekable();
                step.ops[function].name.contains(ACCUMULATE)
                    && taken.peek().is_some()
                    && taken.all(|tensor| gone.makes(step, tensor))
            };
            if differentiated.is_some_and(|op| gone.ops.contains(op)) || adds_up() {
                gone.add(step, function);
            }
        }
        gone
    }

    fn add(&mut self, step: &StepIr, root: OpId) {
        if !self.ops.contains(&root) {
            self.roots.push(root);
            self.ops.extend(step.subtree(root));
        }
    }

    /// Whether a removed op computes a tensor that is not among its inputs.
    fn makes(&self, step: &StepIr, tensor: TensorId) -> bool {
        let makes = |call: &Call| new_outputs(call).any(|given| given == tensor);
        self.ops.iter().any(|&op| step.ops[op].call.as_deref().is_some_and(makes))
    }

    /// The replacement of each tensor that is still taken and no longer computed.
    fn replaced(&self, step: &StepIr, patch: &mut Patch) -> FxHashMap<TensorId, TensorId> {
        let mut taken: FxHashSet<TensorId> = FxHashSet::default();
        let mut still: FxHashSet<TensorId> = FxHashSet::default();
        let kept = step.running().into_iter().filter(|op| !self.ops.contains(op));
        for call in kept.filter_map(|op| step.ops[op].call.as_deref()) {
            taken.extend(call.takes());
            still.extend(new_outputs(call));
        }
        let mut others: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let mut dropped: FxHashSet<TensorId> = FxHashSet::default();
        for &root in &self.roots {
            // Inputs from outside that still exist, or their replacements.
            let mut inputs: Vec<TensorId> = Vec::new();
            let mut inside: FxHashSet<TensorId> = FxHashSet::default();
            for call in calls(step, root) {
                let outer =
                    call.takes().filter(|tensor| !inside.contains(tensor) && !dropped.contains(tensor));
                inputs.extend(outer.map(|tensor| others.get(&tensor).copied().unwrap_or(tensor)));
                inside.extend(new_outputs(call));
            }
            let mut lost: Vec<TensorId> =
                inside.into_iter().filter(|tensor| !still.contains(tensor)).collect();
            lost.sort_unstable();
            for tensor in lost {
                let value = &step.tensors[tensor].value;
                let alike = |other: &TensorId| {
                    let other = step.tensors.get(*other).map(|other| &other.value);
                    other.is_some_and(|other| {
                        (&other.shape, other.dtype, other.device) == (&value.shape, value.dtype, value.device)
                    })
                };
                let same = inputs.iter().copied().find(alike);
                if same.is_some() || taken.contains(&tensor) {
                    others.insert(tensor, same.unwrap_or_else(|| patch.tensor(step, value.clone())));
                } else {
                    dropped.insert(tensor);
                }
            }
        }
        others
    }
}

/// Outputs of a call that are not among its inputs.
fn new_outputs(call: &Call) -> impl Iterator<Item = TensorId> {
    call.gives().filter(|given| !call.takes().any(|taken| taken == *given))
}

fn why(step: &StepIr, chosen: &[OpId], gone: &RemovedOps) -> String {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for &op in chosen {
        *names.entry(&step.ops[op].name).or_default() += 1;
    }
    let mut names: Vec<(usize, &str)> = names.into_iter().map(|(name, count)| (count, name)).collect();
    names.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let said: Vec<String> = names.iter().take(3).map(|(count, name)| format!("{count} {name}")).collect();
    let more = match names.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "other name", "other names")),
    };
    let functions = gone.roots.len() - chosen.len();
    let with = match functions {
        0 => String::new(),
        _ => format!(", and without {} of the backward pass", counted(functions, "function", "functions")),
    };
    format!("without {}{more}{with}", said.join(", "))
}
