//! Ops that are fused: connected elementwise ops over the same number of elements, whose intermediate results no other op of the forward pass takes
//! before the last of them has run.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_step::TensorId;

use super::groups::Groups;
use super::units::{DeviceWork, Units};

/// The places of a chain's ops in the forward pass, and of the functions of their gradients; no functions where these contain ops that are not
/// elementwise.
pub(super) struct Chain {
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
}

/// All chains of two kernels or more.
pub(super) fn find(units: &Units) -> Vec<Chain> {
    let mut forward = connected(units);
    forward.retain(|forward| kernels(units, forward) >= 2);
    let functions = units.functions_of(&forward);
    let chain = |(forward, mut backward): (Vec<usize>, Vec<usize>)| {
        let other = |&at: &usize| units.backward[at].does == DeviceWork::Other;
        if backward.iter().any(other) || escapes(units, &backward) {
            backward.clear();
        }
        Chain { forward, backward }
    };
    forward.into_iter().zip(functions).map(chain).collect()
}

fn kernels(units: &Units, forward: &[usize]) -> usize {
    let of = |&at: &usize| {
        if let DeviceWork::Elementwise { kernels, .. } = units.forward[at].does { kernels } else { 0 }
    };
    forward.iter().map(of).sum()
}

/// Connected elementwise ops of the forward pass, in order: each joins the preceding ops whose outputs it takes, as long as no other op in between
/// takes these.
fn connected(units: &Units) -> Vec<Vec<usize>> {
    let mut groups = Groups::new(units.forward.len());
    let mut writer: FxHashMap<TensorId, usize> = FxHashMap::default();
    // The ops that made each tensor, one per group.
    let mut makers: FxHashMap<TensorId, Vec<usize>> = FxHashMap::default();
    for (at, unit) in units.forward.iter().enumerate() {
        if let DeviceWork::Elementwise { numel, .. } = unit.does {
            groups.add(at);
            let made_by = unit.takes.iter().filter_map(|tensor| writer.get(tensor));
            let made_by =
                made_by.filter(|maker| matches!(units.forward[**maker].does, DeviceWork::Elementwise { .. }));
            for before in groups.distinct(made_by.copied()) {
                let first = units.forward[groups.first(before).min(groups.first(at))].does;
                let alike = matches!(first, DeviceWork::Elementwise { numel: other, .. } if other == numel);
                if alike {
                    groups.join(before, at);
                }
            }
        }
        for tensor in &unit.takes {
            if let Some(makers) = makers.get_mut(tensor) {
                makers.retain(|&maker| groups.taken(maker, at, unit.does));
            }
        }
        for &tensor in &unit.gives {
            writer.insert(tensor, at);
            if let DeviceWork::Elementwise { .. } = unit.does {
                let makers = makers.entry(tensor).or_default();
                if makers.last().is_none_or(|&maker| !groups.are_one(maker, at)) {
                    makers.push(at);
                }
            }
        }
    }
    groups.all()
}

/// Whether a function of the backward pass takes an output of some functions before the last of them has run.
fn escapes(units: &Units, members: &[usize]) -> bool {
    let Some(&last) = members.last() else { return true };
    let mut made: FxHashSet<TensorId> = FxHashSet::default();
    let outside = |at: &usize| members.binary_search(at).is_err();
    members.iter().any(|&at| {
        let new = units.backward[at].gives.iter().filter(|&&tensor| made.insert(tensor));
        let mut takers = new.flat_map(|&tensor| units.takers.backward(tensor, at + 1));
        takers.any(|taker| taker < last && outside(&taker))
    })
}
