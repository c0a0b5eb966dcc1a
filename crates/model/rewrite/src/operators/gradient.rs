//! The gradient of the single call, in place of the gradients of the lookups.

use steptime_aten::Arg;
use steptime_step::{NewOp, OpId, Place, TensorId, Uses};

use super::groups::Group;
use super::index_origin::{self, maker};
use super::result_consumers::{ResultUse, list};
use super::views::Views;
use crate::new_ops::function;

/// The gradient `[bags, columns]`, and a backward function to insert before that of the call; `None` where the gradient has an unknown form.
pub(super) fn build(views: &mut Views<'_>, uses: &Uses, group: &Group) -> Option<(TensorId, Option<NewOp>)> {
    let first = &group.members[0];
    let own = first.trained.as_ref()?.gradient;
    let columns: i64 = group.members.iter().map(|member| member.lookup.width).sum();
    let flat = [first.lookup.bags, columns];
    let comes = match group.joined {
        ResultUse::Alone => own,
        ResultUse::Stack(..) => {
            let root = maker(views.step, uses, own)?;
            views.patch.remove.push(root);
            index_origin::gradient(views.step, uses, root)?
        }
        ResultUse::Cat(op, _) => {
            let root = maker(views.step, uses, own)?;
            if list(views.step, op)?.len() == group.members.len() {
                views.patch.remove.push(root);
                index_origin::gradient(views.step, uses, root)?
            } else {
                part(views, uses, group, root)?
            }
        }
    };
    if views.value(comes).shape[..] == flat {
        return Some((comes, None));
    }
    let (reshape, to) = views.reshape(comes, &flat);
    Some((to, Some(function("ViewBackward0", &[comes], vec![reshape]))))
}

/// One `narrow` in place of those of all lookups.
fn part(views: &mut Views<'_>, uses: &Uses, group: &Group, root: OpId) -> Option<TensorId> {
    let step = views.step;
    let own = *step.ops[root].children.first()?;
    let narrow = |gradient: TensorId| {
        let maker = uses.producer(gradient)?;
        step.ops[own].children.iter().copied().find(|&child| step.is_within(maker, child))
    };
    let gradients = group.members.iter().map(|member| member.trained.as_ref().map(|one| one.gradient));
    let narrows: Vec<OpId> = gradients.map(|gradient| narrow(gradient?)).collect::<Option<_>>()?;
    let Some(Arg::Int(first)) = step.ops[narrows[0]].call.as_deref()?.inputs.get(2) else { return None };
    let from = index_origin::gradient(views.step, uses, root)?;
    let mut shape = step.tensors[group.members[0].trained.as_ref()?.gradient].value.shape.to_vec();
    let wide = |member: &super::groups::Member| {
        member.trained.as_ref().map_or(0, |one| step.tensors[one.gradient].value.size(1))
    };
    shape[1] = group.members.iter().map(wide).sum();
    let (op, to) = views.narrow(from, *first, &shape);
    views.patch.insert.push((Place::Before(narrows[0]), op));
    views.patch.remove.extend(narrows);
    Some(to)
}
