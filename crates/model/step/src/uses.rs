//! Producers and consumers of each tensor.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_graph::TiVec;

use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// Producers and consumers of all tensors of a step, at the time of the look-up.
#[derive(Debug, Clone)]
pub struct Uses {
    producers: TiVec<TensorId, Option<OpId>>,
    /// End of the consumers of each tensor in the list of all; they begin at the end of those of the previous tensor.
    ends: TiVec<TensorId, u32>,
    consumers: Vec<OpId>,
    /// Consumers that a patch changed.
    changed: FxHashMap<TensorId, Vec<OpId>>,
}

impl Uses {
    /// The producers and consumers in a step.
    #[must_use]
    pub fn find(step: &StepIr) -> Uses {
        let running = step.running();
        let calls = || running.iter().filter_map(|&op| Some((op, step.ops[op].call.as_deref()?)));
        let mut producers: TiVec<TensorId, Option<OpId>> = vec![None; step.tensors.len()].into();
        let mut ends: TiVec<TensorId, u32> = vec![0; step.tensors.len()].into();
        for (op, call) in calls() {
            call.takes().for_each(|tensor| ends[tensor] += 1);
            // An op inside another makes the output of that; the innermost comes last.
            new_outputs(call).for_each(|tensor| producers[tensor] = Some(op));
        }
        // First the begins of the consumers; after filling, their ends.
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

    /// The ops that take a tensor, including those inside others.
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

    /// Adds tensors of a patch, without producers and consumers.
    pub(crate) fn grow(&mut self, tensors: usize) {
        self.producers.resize(tensors, None);
    }

    /// Sets the op that makes a tensor; `None` where no op does.
    pub(crate) fn set_producer(&mut self, tensor: TensorId, op: Option<OpId>) {
        self.producers[tensor] = op;
    }

    /// The consumers of a tensor, for changes.
    pub(crate) fn consumers_mut(&mut self, tensor: TensorId) -> &mut Vec<OpId> {
        let known = self.consumers(tensor).to_vec();
        self.changed.entry(tensor).or_insert(known)
    }
}

/// Maximum number of output tensors that are searched linearly among the arguments.
const FEW: usize = 8;

/// The tensors that a call makes: outputs that are not inputs.
pub(crate) fn new_outputs(call: &Call) -> impl Iterator<Item = TensorId> {
    let many = call.gives().nth(FEW).is_some();
    let taken: FxHashSet<TensorId> = if many { call.takes().collect() } else { FxHashSet::default() };
    call.gives().filter(move |given| match many {
        true => !taken.contains(given),
        false => !call.takes().any(|taken| taken == *given),
    })
}
