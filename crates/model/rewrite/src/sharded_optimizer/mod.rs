//! `ZeroRedundancyOptimizer` over `DistributedDataParallel`: every rank has all parameters and averages all gradients, updates only its share of the
//! parameters, and broadcasts it.

mod share;

use rustc_hash::FxHashSet;
use steptime_graph::CollectiveKind;
use steptime_graph::names::EventName;
use steptime_step::{Patch, Place, StepIr, TensorId};

use self::share::Share;
use crate::counted::counted;
use crate::data_parallel::{self, DataParallel};
use crate::error::Error;
use crate::exchange::{NewCollective, free_stream, wait};
use crate::fully_sharded::trained;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// One rank of a job in which each rank updates a share of the parameters: the one with the largest share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardedOptimizer {
    /// Averaging of gradients, with the number of ranks.
    pub dense: DataParallel,
}

impl ShardedOptimizer {
    /// Broadcasts each updated parameter from its rank.
    fn broadcast(self, step: &StepIr, parameters: &[TensorId]) -> Option<Patch> {
        let mut patch = Patch::new(self.name());
        let update = step.running().into_iter().rfind(|&op| step.event(op).is_optimizer_step())?;
        let stream = free_stream(step);
        for &parameter in parameters {
            let (kind, ranks) = (CollectiveKind::Broadcast, self.dense.ranks);
            let sent =
                NewCollective { kind, ranks, sent: parameter, received: parameter, beside: Some(stream) };
            patch.insert.push((Place::LastIn(update), sent.op()));
        }
        patch.insert.extend(parameters.iter().map(|_| (Place::LastIn(update), wait(stream))));
        patch.why = format!(
            "each of {} broadcast by the rank that updates it",
            counted(parameters.len(), "parameter", "parameters")
        );
        Some(patch)
    }
}

impl Rule for ShardedOptimizer {
    fn name(&self) -> &'static str {
        "sharded-optimizer"
    }

    fn stage(&self) -> Stage {
        Stage::Placement
    }

    fn effort(&self) -> &'static str {
        "small: torchrun, DistributedDataParallel around the model, ZeroRedundancyOptimizer around the optimizer"
    }

    fn risk(&self) -> &'static str {
        "the global batch is larger: adapt the learning rate; optimizer states are sharded: call consolidate_state_dict before saving"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Some((
            "the Python time of ZeroRedundancyOptimizer is not known and not counted: the step may be longer",
            0.1,
        ))
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        if self.dense.ranks == 0 {
            return Err(Error::Ranks);
        }
        let gradients = data_parallel::gradients_of(step, &FxHashSet::default())?;
        let parameters = trained(step, &gradients)?;
        let share = Share::assign(step, &parameters, self.dense.ranks);
        let update = share.update(step, self.name());
        let mut now = step.applied(&update, facts.ops)?;
        let mut patches = vec![update];
        let dense = self.dense.patch_without(&now, self.name(), &FxHashSet::default())?;
        now.apply(&dense, facts.ops)?;
        patches.push(dense);
        let wholes: Vec<TensorId> = parameters.iter().map(|one| one.parameter).collect();
        patches.extend(self.broadcast(&now, &wholes));
        Ok(patches)
    }
}

/// Whether an op is in an optimizer's step.
fn is_update(step: &StepIr, op: steptime_step::OpId) -> bool {
    step.is_in(op, EventName::is_optimizer_step)
}
