//! Ops that call others than before where their arguments have other sizes: a sort only where there is much to sort.

use steptime_aten::{OpCall, OpSet};
use steptime_step::{OpId, Origin, Patch, Place, Step};

/// The patch that removes and puts in what ops of a resized step call otherwise than before. Empty where none does.
pub(super) fn patch(before: &Step, after: &Step, ops: &OpSet, rule: &'static str) -> Patch {
    let mut patch = Patch::new(rule);
    for op in after.running() {
        let Origin::Changed(recorded, _) = after.ops[op].origin else { continue };
        if ops.find(&after.ops[op].name).is_none_or(|known| known.expand.is_none()) {
            continue;
        }
        let (Some(was), Some(now)) = (before.call(OpId::of(recorded)), after.call(op)) else { continue };
        let (was, now) = (ops.expand(was), ops.expand(now));
        let names = |calls: &[OpCall]| calls.iter().map(|call| call.name.clone()).collect::<Vec<_>>();
        let (mut gone, mut added) = (names(&was), now);
        added.retain(|call| match gone.iter().position(|name| *name == call.name) {
            Some(same) => {
                gone.swap_remove(same);
                false
            }
            None => true,
        });
        let children = &after.ops[op].children;
        for name in gone {
            let child = children
                .iter()
                .find(|&&child| after.ops[child].name == name && !patch.remove.contains(&child));
            patch.remove.extend(child);
        }
        for call in added {
            let new = patch.described(after, &call);
            patch.insert.push((Place::LastIn(op), new));
        }
    }
    patch
}
