//! Concatenations whose inputs are stored within the result, and copies of columns that are not needed.
//!
//! A product and a lookup write rows at any distance, and an update of tables reads them so.

mod columns;
mod copies;
mod flat;

use rustc_hash::FxHashMap;
use steptime_aten::Arg;
use steptime_step::{Call, NewOp, Patch, Place, StepIr, TensorId, Uses};

use self::columns::Columns;
use crate::counted::counted;
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// A concatenation, and one whose first list is stored within the result.
const CAT: &str = "aten::cat";
const IN_PLACE: &str = "steptime::cat_in_place";

/// Stores the inputs of concatenations as columns of the results, where the ops that write them can, and lets updates of tables read columns of a
/// gradient without a copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConcatInPlace;

impl Rule for ConcatInPlace {
    fn name(&self) -> &'static str {
        "concat-in-place"
    }

    fn stage(&self) -> Stage {
        Stage::Columns
    }

    fn effort(&self) -> &'static str {
        "none in steptime-train; in PyTorch, medium: products and lookups with out= columns of the concatenation"
    }

    fn risk(&self) -> &'static str {
        "none for the results"
    }

    fn patches(&self, step: &StepIr, _: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let uses = Uses::find(step);
        let mut patch = Patch::new(self.name());
        // The new tensor of each input that becomes columns, and the tensor that readers of a copy take.
        let mut replaced: FxHashMap<TensorId, TensorId> = FxHashMap::default();
        let (mut parts, mut cats) = (0, 0);
        for op in step.running().into_iter().filter(|&op| step.ops[op].name == CAT) {
            if flat::place(step, &uses, op, &mut patch, &mut replaced) {
                cats += 1;
                continue;
            }
            let Some(columns) = Columns::find(step, &uses, op, &replaced) else { continue };
            let (within, copied): (Vec<TensorId>, Vec<TensorId>) =
                columns.parts.iter().partition(|part| columns.starts.contains_key(part));
            parts += within.len();
            cats += 1;
            columns.place(step, &mut patch, &mut replaced);
            let inputs = [within, copied].map(Arg::Tensors).into_iter().chain([Arg::Int(1)]).collect();
            let call = Call { inputs, outputs: vec![Arg::Tensor(columns.whole)], ..Call::default() };
            let call = call.with(&mut |tensor| replaced.get(&tensor).copied().unwrap_or(tensor));
            patch.insert.push((Place::Before(op), NewOp::new(IN_PLACE, call)));
            patch.remove.push(op);
        }
        let copies = copies::find(step, &uses);
        for copy in &copies {
            replaced.insert(copy.to, copy.from);
            patch.remove.push(copy.op);
        }
        if patch.is_empty() {
            let reason = "no concatenation has an input that a product or a lookup writes for it alone, and no update of tables reads a copy";
            return Err(Error::NothingToDo { reason: reason.to_owned() });
        }
        replace(step, &mut patch, &replaced);
        let stored = format!(
            "{} of {} stored within the results",
            counted(parts, "input", "inputs"),
            counted(cats, "concatenation", "concatenations")
        );
        let left_out = format!("{} of a gradient left out", counted(copies.len(), "copy", "copies"));
        patch.why = match (cats, copies.len()) {
            (0, _) => left_out,
            (_, 0) => stored,
            _ => format!("{stored}; {left_out}"),
        };
        Ok(vec![patch])
    }
}

/// Replaces tensors in the calls of all ops that remain.
fn replace(step: &StepIr, patch: &mut Patch, replaced: &FxHashMap<TensorId, TensorId>) {
    for op in step.running() {
        let Some(call) = step.ops[op].call.as_deref() else { continue };
        let is_gone = step.around(op).any(|around| patch.remove.contains(&around));
        if !is_gone && call.takes().chain(call.gives()).any(|tensor| replaced.contains_key(&tensor)) {
            let now = call.with(&mut |tensor| replaced.get(&tensor).copied().unwrap_or(tensor));
            patch.change.push((op, now));
        }
    }
}
