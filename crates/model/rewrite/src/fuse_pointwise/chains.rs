//! Which ops become one: connected elementwise ops over the same number of elements, whose intermediate results no other op of
//! the forward pass takes before the last of them has run.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use steptime_step::TensorId;

use super::units::{Does, Units};

/// The places of a chain's ops in the forward pass, and of the functions of their gradients; none where these do more than
/// elementwise ops.
pub(super) struct Chain {
    pub forward: Vec<usize>,
    pub backward: Vec<usize>,
}

/// All chains of two kernels or more.
pub(super) fn find(units: &Units) -> Vec<Chain> {
    let mut chains = Vec::new();
    for forward in connected(units) {
        if kernels(units, &forward) < 2 || escapes(units, &forward, Pass::Forward) {
            continue;
        }
        let mut backward = units.functions_of(&forward);
        let other = |&at: &usize| units.backward[at].does == Does::Other;
        if backward.iter().any(other) || escapes(units, &backward, Pass::Backward) {
            backward.clear();
        }
        chains.push(Chain { forward, backward });
    }
    chains
}

fn kernels(units: &Units, forward: &[usize]) -> usize {
    let of = |&at: &usize| {
        if let Does::Elementwise { kernels, .. } = units.forward[at].does { kernels } else { 0 }
    };
    forward.iter().map(of).sum()
}

/// Elementwise ops of the forward pass that are connected by what one gives and the other takes, in order: each joins those
/// before it as long as no other op in between takes what they make.
fn connected(units: &Units) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: FxHashMap<usize, usize> = FxHashMap::default();
    let mut writer: FxHashMap<TensorId, usize> = FxHashMap::default();
    for (at, unit) in units.forward.iter().enumerate() {
        if let Does::Elementwise { numel, .. } = unit.does {
            let mut own = vec![at];
            let before: BTreeSet<usize> =
                unit.takes.iter().filter_map(|tensor| group_of.get(writer.get(tensor)?)).copied().collect();
            for group in before {
                let mut joined = groups[group].clone();
                joined.extend(&own);
                joined.sort_unstable();
                let first = units.forward[joined[0]].does;
                let alike = matches!(first, Does::Elementwise { numel: other, .. } if other == numel);
                if alike && !escapes(units, &joined, Pass::Forward) {
                    groups[group].clear();
                    own = joined;
                }
            }
            group_of.extend(own.iter().map(|&member| (member, groups.len())));
            groups.push(own);
        }
        writer.extend(unit.gives.iter().map(|&tensor| (tensor, at)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

/// Whether an op between the first and the last of some takes what these make.
fn escapes(units: &Units, members: &[usize], pass: Pass) -> bool {
    let all = if pass == Pass::Forward { &units.forward } else { &units.backward };
    let (Some(&first), Some(&last)) = (members.first(), members.last()) else { return true };
    let mut made: Vec<TensorId> = Vec::new();
    (first..=last).any(|at| {
        if members.binary_search(&at).is_ok() {
            made.extend(&all[at].gives);
            return false;
        }
        all[at].takes.iter().any(|tensor| made.contains(tensor))
    })
}
