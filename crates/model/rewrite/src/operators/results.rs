//! Results of the single call, in place of those of the lookups.

use steptime_aten::Arg;
use steptime_step::{NewOp, OpId, TensorId};

use super::groups::Group;
use super::lookups::tensor;
use super::result_consumers::{ResultUse, list};
use super::views::Views;

/// The output of the call, `[bags, columns]`, and the op after it.
pub(super) fn build(views: &mut Views<'_>, group: &Group) -> (TensorId, Option<NewOp>) {
    let step = views.step;
    let lookups = || group.members.iter().map(|member| &member.lookup);
    let first = &group.members[0].lookup;
    let flat = [first.bags, lookups().map(|lookup| lookup.width).sum()];
    let is_flat = step.tensors[first.result].value.shape.len() == 2;
    let apart = [first.bags, group.members.len() as i64, first.width];
    match group.joined {
        ResultUse::Alone if is_flat => (first.result, None),
        ResultUse::Alone => {
            let shape = step.tensors[first.result].value.shape.clone();
            shaped(views, first.table, &flat, &shape, Some(first.result))
        }
        ResultUse::Stack(op, _) => {
            let given = given(views, op);
            views.patch.remove.push(op);
            shaped(views, first.table, &flat, &apart, given)
        }
        ResultUse::Cat(op, _) => {
            // Other lookups of the list may have been merged already.
            let now = list(step, op).unwrap_or_default();
            let at = now.iter().position(|&tensor| tensor == first.result).unwrap_or_default();
            let all = now.len() == group.members.len();
            let given = if all { given(views, op) } else { None };
            if all {
                views.patch.remove.push(op);
            }
            let (pooled, view) = match (is_flat, given) {
                (true, Some(given)) => (given, None),
                (true, None) => (views.tensor(&flat, first.table), None),
                (false, given) => shaped(views, first.table, &flat, &apart, given),
            };
            if !all {
                let part =
                    view.as_ref().and_then(|view| tensor(&view.call.as_ref()?.outputs, 0)).unwrap_or(pooled);
                splice(views, op, at..at + group.members.len(), part);
            }
            (pooled, view)
        }
    }
}

fn given(views: &Views<'_>, op: OpId) -> Option<TensorId> {
    tensor(&views.step.ops[op].call.as_deref()?.outputs, 0)
}

/// A flat result, and a view of another shape.
fn shaped(
    views: &mut Views<'_>,
    table: TensorId,
    flat: &[i64],
    shape: &[i64],
    given: Option<TensorId>,
) -> (TensorId, Option<NewOp>) {
    let pooled = views.tensor(flat, table);
    let (view, _) = views.view(pooled, shape, given);
    (pooled, Some(view))
}

/// Replaces some tensors in an op's list by one.
fn splice(views: &mut Views<'_>, op: OpId, places: std::ops::Range<usize>, one: TensorId) {
    let Some(mut call) = views.step.ops[op].call.as_deref().cloned() else { return };
    if let Some(Arg::Tensors(list)) = call.inputs.first_mut() {
        list.splice(places, [one]);
    }
    views.patch.change.push((op, call));
}
