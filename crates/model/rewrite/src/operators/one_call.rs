//! The patch that makes one call of a group of lookups, of their gradients and of their tables' updates.

use steptime_step::{Call, NewOp, OpId, Patch, Place, Step, TensorId, Uses};

use super::groups::{Group, last};
use super::inputs::{self, Made};
use super::library::Library;
use super::trained::Trained;
use super::views::Views;
use super::{gradient, results, state, trail};

/// The patch of a group.
pub(super) fn patch(
    step: &Step,
    group: &Group,
    made: &mut Made,
    library: Library,
    rule: &'static str,
) -> Option<Patch> {
    let uses = Uses::of(step);
    let mut views = Views { step, patch: Patch::new(rule) };
    let trained: Vec<&Trained> = group.members.iter().filter_map(|member| member.trained.as_ref()).collect();
    let mut removed: Vec<OpId> = group.members.iter().map(|member| member.lookup.op).collect();
    removed.extend(trained.iter().flat_map(|trained| trained.roots.iter().copied()));
    let inputs = inputs::of(&mut views, &uses, group, &removed, made);
    let at = Place::Before(last(step, group));
    let (pooled, after) = results::of(&mut views, group);
    let calls = library.calls(&mut views, group, &inputs);
    let forward = calls.forward(&mut views, pooled);
    for op in inputs.ops.iter().cloned().chain(forward).chain(after) {
        views.patch.insert.push((at, op));
    }
    if group.optimizer.is_some() && !trained.is_empty() {
        let first = first(step, &trained);
        let (comes, functions) = gradient::of(&mut views, &uses, group)?;
        let backward = calls.backward(&mut views, comes);
        views.patch.insert.extend(functions.into_iter().chain(backward).map(|op| (Place::Before(first), op)));
        state::shorten(&mut views, &trained);
    }
    let taken = group.members.iter().flat_map(|member| [Some(member.lookup.indices), member.lookup.offsets]);
    let taken: Vec<TensorId> = taken.flatten().collect();
    let mut kept = vec![inputs.indices, inputs.offsets];
    kept.extend(views.patch.insert.iter().flat_map(|(_, op)| takes(op)));
    views.patch.remove.extend(&removed);
    views.patch.remove.extend(trail::unused(step, &uses, &taken, &removed, &kept));
    views.patch.why = why(step, group, library, &views.patch);
    Some(views.patch)
}

/// The first function of the backward pass to run.
fn first(step: &Step, trained: &[&Trained]) -> OpId {
    let mut running = step.running().into_iter();
    running.find(|&op| trained.iter().any(|one| one.function() == op)).unwrap_or(trained[0].function())
}

/// The tensors that an op and those inside it take.
fn takes(op: &NewOp) -> Vec<TensorId> {
    let own = op.call.iter().flat_map(Call::takes);
    own.chain(op.children.iter().flat_map(takes)).collect()
}

/// What is done, in words.
fn why(step: &Step, group: &Group, library: Library, patch: &Patch) -> String {
    let ops: usize = patch.remove.iter().map(|&op| step.subtree(op).len()).sum();
    let members = group.members.iter().map(|member| &member.lookup);
    let columns: i64 = members.clone().map(|lookup| lookup.width).sum();
    let tables = match group.members.len() {
        1 => "one table".to_owned(),
        tables => format!("{tables} tables"),
    };
    let update =
        group.optimizer.map_or(String::new(), |optimizer| format!(", their gradients and {optimizer}"));
    let kept: u64 = group.optimizer.filter(|_| library == Library::Steptime).map_or(0, |optimizer| {
        members.map(|lookup| state::bytes(&step.tensors[lookup.table].value, optimizer)).sum()
    });
    let kept = match kept {
        0 => String::new(),
        bytes => format!(
            " ({:.0} MB of the optimizer's state are not PyTorch's and not in its peak memory)",
            bytes as f64 / 1e6
        ),
    };
    format!("lookups in {tables}, {columns} columns in all{update} become one call: {ops} ops less{kept}")
}
