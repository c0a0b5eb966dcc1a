//! One GPU's step on several numbers of GPUs: each GPU runs it, and gradients are averaged among them.

use rayon::prelude::*;
use steptime_rewrite::{Error as Refusal, RuleError};
use steptime_trace::Nanos;

use crate::doubt::Doubt;
use crate::error::Error;
use crate::job::{Spread, World};
use crate::query::WhatIfs;

/// Number of GPUs, and number of nodes where given.
pub type GpuCount = (u32, Option<u32>);

/// A step on a number of GPUs.
#[derive(Debug, Clone)]
pub struct StepOnGpus {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of nodes; `None` where not given.
    pub nodes: Option<u32>,
    /// Samples per step of all GPUs together.
    pub batch: u64,
    /// Time from one step to the next.
    pub step: Nanos,
    /// Interval of the step time with probability [`crate::INTERVAL_LEVEL`].
    pub interval: [Nanos; 2],
    /// Time in which data is on its way between GPUs and nothing else runs, on the GPU where it is longest.
    pub exposed: Nanos,
    /// Doubts about it; the interval is wider by these.
    pub doubts: Vec<Doubt>,
}

impl WhatIfs<'_> {
    /// Predicts the step on each of these numbers of GPUs, which share the recorded batch, or each keep it.
    ///
    /// # Errors
    /// As [`crate::Query::in_world`]; also where the batch is not recorded, or cannot be shared evenly.
    pub fn on_gpus(&self, counts: &[GpuCount], keep_batch: bool) -> Result<Vec<StepOnGpus>, Error> {
        counts.par_iter().map(|&count| self.on(count, keep_batch)).collect()
    }

    fn on(&self, (gpus, nodes): GpuCount, keep_batch: bool) -> Result<StepOnGpus, Error> {
        let recorded = self.recorded();
        let refused = |reason: String| {
            let source = RuleError { rule: "scale", source: Refusal::NothingToDo { reason } };
            Error::Rewrite { path: recorded.path.clone(), source }
        };
        let batch = recorded.batch().ok_or_else(|| {
            refused(
                "its batch is not recorded: record it with batch=N, or write \"batch\": N into its meta.json"
                    .into(),
            )
        })?;
        if !keep_batch && !batch.is_multiple_of(u64::from(gpus)) {
            return Err(refused(format!(
                "{gpus} GPUs cannot share {batch} samples evenly: --weak leaves {batch} to each, or take a divisor"
            )));
        }
        let each = if keep_batch { batch } else { batch / u64::from(gpus) };
        let all = each * u64::from(gpus);
        if gpus == 1 {
            let before = self.before();
            return Ok(StepOnGpus {
                gpus,
                nodes,
                batch: all,
                step: before.step,
                interval: before.interval,
                exposed: Nanos::ZERO,
                doubts: before.doubts.clone(),
            });
        }
        let Spread { predicted, .. } =
            self.in_world(&World { nodes, batch: Some(each), ..World::new(gpus) })?;
        let exposed = predicted.ranks.iter().map(|rank| rank.parts.moves).max().unwrap_or_default();
        let (step, interval, doubts) = (predicted.step, predicted.interval, predicted.doubts);
        Ok(StepOnGpus { gpus, nodes, batch: all, step, interval, exposed, doubts })
    }
}
