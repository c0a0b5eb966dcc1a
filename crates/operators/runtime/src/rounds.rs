//! Rounds of an update: each batch whose gradients are accumulated has its own inputs and its own loss.

use rustc_hash::FxHashMap;
use steptime_aten::Arg;
use steptime_eager::Role;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, OpId, Origin, Patch, StepIr, TensorId};

use crate::described::DescribedStep;
use crate::error::Error;

/// Name of the rule that accumulates gradients, and of the op by which it divides the loss.
const RULE: &str = "accumulate";
const DIVIDE: &str = "aten::div";

/// Name of an input in the first round, and the round, from 0: `dense#2` is the input `dense` of round 1.
#[must_use]
pub fn input_round(name: &str) -> (&str, usize) {
    let numbered = || {
        let (name, number) = name.rsplit_once('#')?;
        Some((name, number.parse::<usize>().ok()?.checked_sub(1)?))
    };
    numbered().unwrap_or((name, 0))
}

fn name_in_round(name: &str, round: u32) -> String {
    format!("{name}#{}", round + 1)
}

impl DescribedStep {
    /// Number of rounds of an update; 1 where gradients are not accumulated.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.step.running().into_iter().map(|op| self.step.ops[op].round).max().unwrap_or(0) + 1
    }

    /// Gives each round after the first inputs of its own, named as in `dense#2`, and its own loss. Does nothing where gradients are not accumulated.
    ///
    /// # Errors
    /// Where the changed step is invalid.
    pub fn separate_rounds(&mut self) -> Result<(), Error> {
        let rounds = self.rounds();
        if rounds == 1 {
            return Ok(());
        }
        self.name_losses();
        self.name_divisors(rounds);
        let mut inputs = RoundInputs::new(self);
        let step = &self.step;
        for op in step.running().into_iter().filter(|&op| step.ops[op].round > 0) {
            let Some(call) = step.ops[op].call.as_deref() else { continue };
            let round = step.ops[op].round;
            let own = call.with(&mut |tensor| inputs.in_round(self, tensor, round));
            if own != *call {
                inputs.patch.change.push((op, own));
            }
        }
        let RoundInputs { patch, names, .. } = inputs;
        self.step
            .apply(&patch, &self.ops.clone())
            .map_err(|source| Error::Order { why: source.to_string() })?;
        self.names.extend(names);
        Ok(())
    }

    /// The named input of the first round that an op of a later round takes.
    pub(crate) fn shared_input(&self) -> Option<&str> {
        let step = &self.step;
        let later = step.running().into_iter().filter(|&op| step.ops[op].round > 0);
        let mut taken = later
            .filter_map(|op| step.ops[op].call.as_deref())
            .flat_map(|call| call.takes().collect::<Vec<_>>());
        taken.find_map(|tensor| match self.names.get(&tensor) {
            Some((name, Role::Input)) if input_round(name).1 == 0 => Some(&**name),
            _ => None,
        })
    }

    /// Names the losses of later rounds.
    fn name_losses(&mut self) {
        let step = &self.step;
        let mut all = Vec::new();
        for op in step.running() {
            let row = &step.ops[op];
            let Some(original) = row.again.filter(|_| row.round > 0) else { continue };
            let call = |op: OpId| step.ops[op].call.as_deref();
            let Some((copy, original)) = call(op).zip(call(original)) else { continue };
            for (copy, original) in copy.gives().zip(original.gives()) {
                if let Some((name, Role::Loss)) = self.names.get(&original) {
                    all.push((copy, (name_in_round(name, row.round), Role::Loss)));
                }
            }
        }
        self.names.extend(all);
    }

    /// Notes the number that each loss is divided by.
    fn name_divisors(&mut self, rounds: u32) {
        let step = &self.step;
        let divisor = |op| {
            let row: &steptime_step::Op = &step.ops[op];
            let call: &Call = row.call.as_deref().filter(|_| row.name == DIVIDE)?;
            match (row.origin, call.inputs.get(1)) {
                (Origin::Inserted(RULE), Some(Arg::Tensor(number))) => Some(*number),
                _ => None,
            }
        };
        let numbers: Vec<TensorId> = step.running().into_iter().filter_map(divisor).collect();
        for number in numbers {
            let value = Role::Number(f64::from(rounds));
            self.names.entry(number).or_insert_with(|| ("batches of an update".to_owned(), value));
        }
    }
}

/// The inputs of later rounds, and their views, in the memory of their round.
struct RoundInputs {
    patch: Patch,
    names: Vec<(TensorId, (String, Role))>,
    known: FxHashMap<(TensorId, u32), TensorId>,
    /// Memory of inputs, and of the same inputs in later rounds.
    inputs: FxHashMap<StorageId, FxHashMap<u32, StorageId>>,
    next_storage: u32,
}

impl RoundInputs {
    fn new(described: &DescribedStep) -> RoundInputs {
        let tensors = &described.step.tensors;
        let storages = || tensors.iter().filter_map(|row| row.storage);
        let is_input = |tensor: &TensorId| matches!(described.named(*tensor), Some((_, Role::Input)));
        let inputs = tensors.keys().filter(is_input).filter_map(|tensor| tensors[tensor].storage);
        RoundInputs {
            patch: Patch::new(RULE),
            names: Vec::new(),
            known: FxHashMap::default(),
            inputs: inputs.map(|storage| (storage, FxHashMap::default())).collect(),
            next_storage: storages().map(|storage| storage.0 + 1).max().unwrap_or(0),
        }
    }

    /// The tensor in place of one of a round's op.
    fn in_round(&mut self, described: &DescribedStep, tensor: TensorId, round: u32) -> TensorId {
        if let Some(&known) = self.known.get(&(tensor, round)) {
            return known;
        }
        let step: &StepIr = &described.step;
        let name = match described.named(tensor) {
            Some((name, Role::Input)) => Some(name),
            _ => None,
        };
        let own = step.tensors[tensor].storage.and_then(|storage| self.inputs.get_mut(&storage));
        let storage = own.map(|rounds| {
            *rounds.entry(round).or_insert_with(|| {
                self.next_storage += 1;
                StorageId(self.next_storage - 1)
            })
        });
        if name.is_none() && storage.is_none() {
            return tensor;
        }
        let own = self.patch.tensor_in(step, step.tensors[tensor].value.clone(), storage);
        self.known.insert((tensor, round), own);
        if let Some(name) = name {
            self.names.push((own, (name_in_round(name, round), Role::Input)));
        }
        own
    }
}
