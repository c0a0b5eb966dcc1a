//! The backward pass: gradients are cast where the type of the differentiated tensor changed.

use rustc_hash::FxHashMap;
use steptime_aten::Dtype;
use steptime_step::{OpId, Place, TensorId};

use super::gradient_types::{Function, Needs};
use super::lists::Kind;
use super::types::{Local, Types};

/// Required types of gradients at the end of a function.
type GradientTypes = FxHashMap<TensorId, Dtype>;

/// Propagates types through the functions of the backward pass, in order, and through ops that run after a given number of them.
pub(super) fn follow(types: &mut Types<'_>, functions: &[Function], between: &[(usize, OpId)]) {
    let mut between = between.iter().peekable();
    let needs = Needs::find(types.step, functions, types.narrow);
    for (at, ((function, &want), made_here)) in
        functions.iter().zip(&needs.wants).zip(&needs.made).enumerate()
    {
        while let Some((_, op)) = between.next_if(|(after, _)| *after <= at) {
            types.follow(*op, &Local::default(), false);
        }
        let mut local = saved(types, function);
        incoming(types, function, want, &mut local);
        for &child in &types.step.ops[function.root].children {
            if function.sums.contains(&child) {
                terms(types, child, made_here);
            }
            types.follow(child, &local, false);
        }
        for &tensor in &function.given {
            cast_where_required(types, tensor, Place::After(function.root), made_here.get(&tensor).copied());
        }
    }
    between.for_each(|(_, op)| types.follow(*op, &Local::default(), false));
}

/// Tensors saved by the forward pass for a function: the inputs of its op after autocast's casts.
fn saved(types: &Types<'_>, function: &Function) -> Local {
    let casts = match function.kind {
        Kind::Narrow => &types.saved[0],
        Kind::Wide | Kind::WideResult | Kind::Promoted => &types.saved[1],
        Kind::WideSum | Kind::Any => return Local::default(),
    };
    let mut local = Local::default();
    for op in types.step.subtree(function.root) {
        let Some(call) = &types.step.ops[op].call else { continue };
        for tensor in call.takes().filter(|tensor| !function.incoming.contains(tensor)) {
            if let Some(&cast) = casts.get(&types.replacement(tensor, &Local::default())) {
                local.insert(tensor, cast);
            }
        }
    }
    local
}

/// Casts incoming gradients of another type, for this function only.
fn incoming(types: &mut Types<'_>, function: &Function, want: Option<Dtype>, local: &mut Local) {
    let Some(want) = want else { return };
    for &tensor in &function.incoming {
        let stands = types.replacement(tensor, local);
        if types.dtype(stands).is_some_and(|is| is != want) {
            let cast = types.cast(stands, want, Place::Before(function.root), true);
            local.insert(tensor, cast);
        }
    }
}

/// Casts the terms of a sum of gradients to the type of the sum.
fn terms(types: &mut Types<'_>, sum: OpId, needs: &GradientTypes) {
    let Some(call) = &types.step.ops[sum].call else { return };
    let Some(need) = call.gives().find_map(|tensor| needs.get(&tensor).copied()) else { return };
    for tensor in call.takes() {
        cast_where_required(types, tensor, Place::Before(sum), Some(need));
    }
}

/// Casts a gradient where another type is required; all later ops take the cast.
fn cast_where_required(types: &mut Types<'_>, tensor: TensorId, place: Place, need: Option<Dtype>) {
    let stands = types.replacement(tensor, &Local::default());
    let (Some(need), Some(is)) = (need, types.dtype(stands)) else { return };
    if need != is {
        let cast = types.cast(stands, need, place, true);
        types.now.insert(tensor, cast);
    }
}
