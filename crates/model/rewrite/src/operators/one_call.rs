//! The patch that replaces a group of lookups, their gradients and their tables' updates by one call.

use steptime_step::{Call, Draft, NewOp, OpId, Patch, Place, StepIr, TensorId};

use super::calls::Calls;
use super::fbgemm::FusedTables;
use super::groups::{Group, Training};
use super::inputs::{self, InputCache, Inputs};
use super::library::Library;
use super::state::{self, OptimizerRemoval};
use super::steptime_library::Pool;
use super::views::Views;
use super::{gradient, index_origin, results};

/// The patch of a group of a draft. `leaving` holds the optimizers' lists, which are shortened at the last group.
pub(super) fn patch(
    draft: &Draft,
    group: &Group,
    made: &mut InputCache,
    leaving: &mut OptimizerRemoval,
    library: Library,
    rule: &'static str,
) -> Option<Patch> {
    let (step, uses) = (draft.step(), draft.uses());
    let mut views = Views { step, patch: Patch::new(rule) };
    let mut removed: Vec<OpId> = group.members.iter().map(|member| member.lookup.op).collect();
    removed.extend(group.trained().flat_map(|trained| match group.training {
        // Dense gradients are accumulated as before.
        Training::DenseGradient => &trained.roots[..1],
        _ => &trained.roots[..],
    }));
    let inputs = inputs::build(&mut views, uses, group, &removed, made);
    let at = Place::Before(group.last);
    let (pooled, after) = results::build(&mut views, group);
    let calls = calls(library, &mut views, group, &inputs);
    let forward = calls.forward(&mut views, pooled);
    for op in inputs.ops.iter().cloned().chain(forward).chain(after) {
        views.patch.insert.push((at, op));
    }
    if let Some(first) = group.first.filter(|_| group.training != Training::None) {
        let (comes, functions) = gradient::build(&mut views, uses, group)?;
        let backward = calls.backward(&mut views, comes);
        views.patch.insert.extend(functions.into_iter().chain(backward).map(|op| (Place::Before(first), op)));
    }
    match group.optimizer() {
        Some(_) => leaving.leave(&mut views.patch, step, group),
        None => leaving.stay(group),
    }
    let taken = group.members.iter().flat_map(|member| [Some(member.lookup.indices), member.lookup.offsets]);
    let taken: Vec<TensorId> = taken.flatten().collect();
    let mut kept = vec![inputs.indices, inputs.offsets];
    kept.extend(views.patch.insert.iter().flat_map(|(_, op)| takes(op)));
    views.patch.remove.extend(&removed);
    views.patch.remove.extend(index_origin::unused(step, uses, &taken, &removed, &kept));
    views.patch.why = why(step, group, library, &views.patch);
    Some(views.patch)
}

/// The input tensors of an op and of the ops inside it.
fn takes(op: &NewOp) -> Vec<TensorId> {
    let own = op.call.iter().flat_map(Call::takes);
    own.chain(op.children.iter().flat_map(takes)).collect()
}

/// The calls of a library for a group.
fn calls<'c>(
    library: Library,
    views: &mut Views<'_>,
    group: &'c Group,
    inputs: &'c Inputs,
) -> Box<dyn Calls + 'c> {
    match library {
        Library::Steptime | Library::SteptimeDense => Box::new(Pool { group, inputs }),
        Library::Fbgemm => Box::new(FusedTables::new(views, group, inputs)),
    }
}

/// A description of the change.
fn why(step: &StepIr, group: &Group, library: Library, patch: &Patch) -> String {
    let ops: usize = patch.remove.iter().map(|&op| step.subtree(op).len()).sum();
    let members = group.members.iter().map(|member| &member.lookup);
    let columns: i64 = members.clone().map(|lookup| lookup.width).sum();
    let tables = match group.members.len() {
        1 => "one table".to_owned(),
        tables => format!("{tables} tables"),
    };
    let update = match group.training {
        Training::None => String::new(),
        Training::Update(optimizer) => format!(", their gradients and {optimizer}"),
        Training::DenseGradient => " and their dense gradients".to_owned(),
    };
    let kept: u64 = group.optimizer().filter(|_| library == Library::Steptime).map_or(0, |optimizer| {
        members.map(|lookup| state::bytes(&step.tensors[lookup.table].value, optimizer)).sum()
    });
    let kept = match kept {
        0 => String::new(),
        bytes => format!(
            " ({:.0} MB of optimizer state are allocated outside PyTorch and not in its peak memory)",
            bytes as f64 / 1e6
        ),
    };
    format!(
        "lookups in {tables} of {columns} columns in total{update} become one call: {ops} fewer ops{kept}"
    )
}
