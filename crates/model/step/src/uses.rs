//! Which ops make and take each tensor.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::TiVec;

use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::Step;

/// Producers and consumers of all tensors of a step, as it was when they were looked up.
#[derive(Debug, Clone)]
pub struct Uses {
    producers: TiVec<TensorId, Option<OpId>>,
    /// Where the consumers of each tensor end in the list of all; they begin where those of the one before end.
    ends: TiVec<TensorId, u32>,
    consumers: Vec<OpId>,
    /// The consumers of tensors of which a patch changed them.
    changed: FxHashMap<TensorId, Vec<OpId>>,
}

impl Uses {
    /// Those of a step.
    #[must_use]
    pub fn of(step: &Step) -> Uses {
        let running = step.running();
        let calls = || running.iter().filter_map(|&op| Some((op, step.ops[op].call.as_deref()?)));
        let mut producers: TiVec<TensorId, Option<OpId>> = vec![None; step.tensors.len()].into();
        let mut ends: TiVec<TensorId, u32> = vec![0; step.tensors.len()].into();
        for (op, call) in calls() {
            call.takes().for_each(|tensor| ends[tensor] += 1);
            // What is inside an op makes what the op gives; the innermost comes last.
            made(call).for_each(|tensor| producers[tensor] = Some(op));
        }
        // First where the consumers of each begin; filled up, where they end.
        let mut all = 0;
        for end in &mut ends {
            let count = std::mem::replace(end, all);
            all += count;
        }
        let mut consumers = vec![OpId(0); all as usize];
        for (op, call) in calls() {
            for tensor in call.takes() {
                consumers[ends[tensor] as usize] = op;
                ends[tensor] += 1;
            }
        }
        Uses { producers, ends, consumers, changed: FxHashMap::default() }
    }

    /// The innermost op that makes a tensor; `None` where it is older than the step.
    #[must_use]
    pub fn producer(&self, tensor: TensorId) -> Option<OpId> {
        self.producers[tensor]
    }

    /// The ops that take a tensor, those inside others too.
    #[must_use]
    pub fn consumers(&self, tensor: TensorId) -> &[OpId] {
        if let Some(changed) = self.changed.get(&tensor) {
            return changed;
        }
        if self.ends.get(tensor).is_none() {
            return &[];
        }
        let begin = usize::from(tensor).checked_sub(1).map_or(0, |before| self.ends[TensorId::from(before)]);
        &self.consumers[begin as usize..self.ends[tensor] as usize]
    }

    /// Makes room for tensors that a patch added, which have neither producer nor consumers yet.
    pub(crate) fn grow(&mut self, tensors: usize) {
        self.producers.resize(tensors, None);
    }

    /// Sets the op that makes a tensor; `None` where no op does.
    pub(crate) fn set_producer(&mut self, tensor: TensorId, op: Option<OpId>) {
        self.producers[tensor] = op;
    }

    /// The consumers of a tensor, to be changed.
    pub(crate) fn consumers_mut(&mut self, tensor: TensorId) -> &mut Vec<OpId> {
        let known = self.consumers(tensor).to_vec();
        self.changed.entry(tensor).or_insert(known)
    }
}

/// The most tensors of a call that are looked for in its arguments one by one.
const FEW: usize = 8;

/// The tensors that a call makes: those that it gives and does not take.
pub(crate) fn made(call: &Call) -> impl Iterator<Item = TensorId> {
    let many = call.gives().nth(FEW).is_some();
    let taken: FxHashSet<TensorId> = if many { call.takes().collect() } else { FxHashSet::default() };
    call.gives().filter(move |given| match many {
        true => !taken.contains(given),
        false => !call.takes().any(|taken| taken == *given),
    })
}
