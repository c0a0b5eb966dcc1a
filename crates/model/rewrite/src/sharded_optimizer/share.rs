//! Parameters that a rank updates, and its optimizer without the others.

use rustc_hash::FxHashSet;
use steptime_step::{Call, OpId, Patch, StepIr, TensorId};

use super::is_update;
use crate::fully_sharded::TrainedParameter;
use crate::tensor_groups::{lists, longest};
use crate::updates::{self, without};

/// The op that reads a step count on the host, once or several times per parameter.
const READS: &str = "aten::item";

/// The parameters of the rank with the largest share.
pub(super) struct Share {
    /// For each parameter, the parameter and its gradient.
    memory: Vec<FxHashSet<TensorId>>,
    /// For each parameter, whether this rank updates it.
    own: Vec<bool>,
    ranks: u32,
    /// Bytes of this rank's parameters, and of all.
    bytes: [u64; 2],
}

impl Share {
    /// Assigns parameters to ranks: the largest first, each to the rank with the fewest bytes so far.
    pub fn assign(step: &StepIr, parameters: &[TrainedParameter], ranks: u32) -> Share {
        let bytes = |at: usize| step.tensors[parameters[at].parameter].value.bytes();
        let mut order: Vec<usize> = (0..parameters.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(bytes(at)));
        let mut loads = vec![0_u64; ranks.max(1) as usize];
        let mut rank_of = vec![0; parameters.len()];
        for at in order {
            let least = (0..loads.len()).min_by_key(|&rank| loads[rank]).unwrap_or(0);
            loads[least] += bytes(at);
            rank_of[at] = least;
        }
        let most = (0..loads.len()).rev().max_by_key(|&rank| loads[rank]).unwrap_or(0);
        let memory = parameters.iter().map(|one| one.tensors(step)).collect();
        let own = rank_of.iter().map(|&rank| rank == most).collect();
        Share { memory, own, ranks, bytes: [loads[most], loads.iter().sum()] }
    }

    /// The optimizer without the parameters of other ranks.
    pub fn update(&self, step: &StepIr, rule: &'static str) -> Patch {
        let mut patch = Patch::new(rule);
        let updates = updates::find(step, self.memory.clone());
        let mut gone: Vec<OpId> = Vec::new();
        let others = updates.alone.iter().zip(&self.own).filter(|(_, own)| !**own);
        gone.extend(others.flat_map(|(alone, _)| alone));
        let mut counts: FxHashSet<TensorId> = FxHashSet::default();
        for (op, places) in &updates.lists {
            let places: Vec<usize> = places
                .iter()
                .enumerate()
                .filter(|(at, _)| !self.own[*at])
                .filter_map(|(_, place)| *place)
                .collect();
            let Some(call) = step.ops[*op].call.as_deref().filter(|_| !places.is_empty()) else { continue };
            let length = longest(call);
            let full = lists(call).filter(|list| list.len() == length);
            let items = full.flat_map(|list| places.iter().map(|&place| list[place]));
            counts.extend(items.filter(|&item| step.tensors[item].value.shape.is_empty()));
            let left = without(call, &places);
            if left.inputs.iter().all(|arg| arg.tensors().is_empty()) {
                gone.push(*op);
                continue;
            }
            patch.change.push((*op, left));
            // Where the op has one inner op per item of the list, those of removed items go too.
            let inside = &step.ops[*op].children;
            if inside.len() == length {
                gone.extend(places.iter().filter_map(|&place| inside.get(place)));
            }
        }
        let reads = |op: &OpId| {
            let mut takes = step.ops[*op].call.as_deref().into_iter().flat_map(Call::takes).peekable();
            step.ops[*op].name == READS
                && is_update(step, *op)
                && takes.peek().is_some()
                && takes.all(|taken| counts.contains(&taken))
        };
        gone.extend(step.running().into_iter().filter(reads));
        gone.sort_unstable();
        gone.dedup();
        patch.remove = gone;
        let own = self.own.iter().filter(|own| **own).count();
        patch.why = format!(
            "{} parameters ({:.1} MB) split over {} ranks: the largest part has {own} ({:.1} MB)",
            self.own.len(),
            self.bytes[1] as f64 / 1e6,
            self.ranks,
            self.bytes[0] as f64 / 1e6,
        );
        patch
    }
}
