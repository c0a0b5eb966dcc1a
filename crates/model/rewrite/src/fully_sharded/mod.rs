//! Parameters, gradients and optimizer states sharded over ranks: FSDP2, `fully_shard` of each block and of the whole model.
//!
//! The rule inserts the ops that PyTorch 2.11 was recorded to run: before a block its parameters are gathered on separate streams and copied into
//! place, after it they are freed; in the backward pass they are gathered again, those of the next block while one runs; gradients are reduced over
//! ranks, and each rank keeps its part; the optimizer updates parts.

mod gather;
mod hooks;
mod reduce;
mod sharding_patch;
mod shards;
mod trained_parameters;
mod units;
mod updates;

use rustc_hash::FxHashSet;
use steptime_step::{NewOp, Patch, StepIr, StreamWait};

use self::sharding_patch::PatchBuilder;
use self::shards::{Memory, Shards};
pub(crate) use self::trained_parameters::{TrainedParameter, trained};
use self::units::Unit;
use self::updates::Parts;
use crate::blocks::Blocks;
use crate::checkpoint::repeated;
use crate::counted::counted;
use crate::data_parallel;
use crate::error::Error;
use crate::passes::Passes;
use crate::repeated_tensors::free_storage;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Streams: the first collects the parts, the second gathers parameters, the third reduces gradients.
const COPY_IN: u32 = 1;
const ALL_GATHER: u32 = 2;
const REDUCE: u32 = 3;

/// One rank of a job in which each rank has a part of all parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullySharded {
    /// Number of ranks.
    pub ranks: u32,
    /// Modules whose parameters are gathered together.
    pub blocks: Blocks,
    /// Whether a block's parameters are freed after its forward pass and gathered again for its backward pass (`reshard_after_forward`).
    pub reshard: bool,
}

impl FullySharded {
    /// One of `ranks` ranks, with PyTorch's defaults.
    #[must_use]
    pub fn new(ranks: u32) -> FullySharded {
        FullySharded { ranks, blocks: Blocks::default(), reshard: true }
    }
}

/// An op that makes a stream wait for another.
fn streams_wait(waiting: u32, awaited: u32) -> NewOp {
    NewOp::waiting("cudaStreamWaitEvent", StreamWait { waiting, awaited })
}

impl Rule for FullySharded {
    fn name(&self) -> &'static str {
        "fully-sharded"
    }

    fn stage(&self) -> Stage {
        Stage::Placement
    }

    fn effort(&self) -> &'static str {
        "small: torchrun, fully_shard(block) for each block, then fully_shard(model), before the optimizer is made"
    }

    fn risk(&self) -> &'static str {
        "the global batch is larger: adapt the learning rate; other code that reads parameters finds shards"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "fully_shard calls Python before and after each block, and DTensor for each op of the optimizer: three models on two hosts took \
             0.95 to 1.7 times the predicted time",
            0.53,
        ))
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if self.ranks == 0 {
            return Err(Error::Ranks);
        }
        let gradients = data_parallel::gradients_of(step, &FxHashSet::default())?;
        if step.ops.iter().any(|op| op.stream > 0) {
            let reason = "kernels were moved to several streams: shard the step first".to_owned();
            return Err(Error::NothingToDo { reason });
        }
        if step.running().into_iter().any(|op| step.ops[op].name.starts_with("FSDP::")) {
            return Err(Error::NothingToDo { reason: "parameters are sharded already".to_owned() });
        }
        let passes = Passes::find(step);
        if passes.are_several(step) {
            let reason = "the step has several backward passes, and the gathering of parameters in each is not known: shard the step of one batch"
                .to_owned();
            return Err(Error::NothingToDo { reason });
        }
        let found = self.blocks.find(step, &passes.forward, facts, || repeated(step))?;
        let units = units::find(step, &passes, &found, &gradients);
        check(step, &units)?;
        let mut patch = Patch::new(self.name());
        let next_storage = free_storage(step);
        let mut memory = Memory { step, patch: &mut patch, next_storage };
        let units: Vec<(Unit, Shards)> = units
            .into_iter()
            .map(|unit| (unit.clone(), shards::cut(&mut memory, &unit, self.ranks)))
            .collect();
        let mut placed = PatchBuilder::new(memory, &passes, &units, self);
        placed.forward();
        placed.backward();
        Parts::find(step, &units, self.ranks).update(step, &passes, &mut patch);
        patch.why = why(step, &units, &found.what, self);
        Ok(vec![patch])
    }
}

/// Checks for parameters that `fully_shard` refuses.
fn check(step: &StepIr, units: &[Unit]) -> Result<(), Error> {
    let parameters = || units.iter().flat_map(|unit| &unit.parameters).map(|&id| &step.tensors[id].value);
    if parameters().next().is_none() {
        return Err(trained_parameters::none());
    }
    if parameters().any(|value| value.shape.is_empty()) {
        return Err(Error::NothingToDo {
            reason: "a parameter is a scalar, which fully_shard rejects: make it a tensor of one element"
                .to_owned(),
        });
    }
    for unit in units {
        let mut types = unit.parameters.iter().map(|&id| step.tensors[id].value.dtype);
        let first = types.next();
        if types.any(|dtype| Some(dtype) != first) {
            let name = unit.name.as_deref().unwrap_or("the model");
            return Err(Error::NothingToDo {
                reason: format!(
                    "parameters of {name} have several types: parameters that are gathered together must have one"
                ),
            });
        }
    }
    Ok(())
}

fn why(step: &StepIr, units: &[(Unit, Shards)], what: &str, rule: &FullySharded) -> String {
    let parameters =
        || units.iter().flat_map(|(unit, _)| &unit.parameters).map(|&id| &step.tensors[id].value);
    let bytes: u64 = parameters().map(steptime_aten::Tensor::bytes).sum();
    let blocks: Vec<&str> = units.iter().filter_map(|(unit, _)| unit.name.as_deref()).collect();
    let rest =
        units.iter().find(|(unit, _)| unit.name.is_none()).map_or(0, |(unit, _)| unit.parameters.len());
    let named = match blocks[..] {
        [] => "as a whole".to_owned(),
        [one] => format!("in the block {one} ({what})"),
        [first, .., last] => format!("in {} blocks {first} to {last} ({what})", blocks.len()),
    };
    let rest = if rest > 0 { format!(", {rest} in no block") } else { String::new() };
    let kept =
        if rule.reshard { "gathered again for the backward pass" } else { "kept for the backward pass" };
    format!(
        "{} ({:.1} MB) sharded over {} ranks {named}{rest}, {kept}",
        counted(parameters().count(), "parameter", "parameters"),
        bytes as f64 / 1e6,
        rule.ranks,
    )
}
