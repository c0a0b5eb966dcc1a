//! Prediction of the step that is run on a GPU, by the same rules.

use std::path::Path;

use serde::Serialize;
use steptime_predict::pricing::{self, shipped_for};
use steptime_predict::{Change, Choice, Step};
use steptime_rewrite::{CudaGraph, PrefetchInputs, ResizeBatch, Rule, Tf32};

use crate::arguments::Train;
use crate::plan::Plan;
use crate::processor::{Precision, Processor};
use crate::row_copies::RowCopies;

/// Predicted time of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTime {
    /// Time of a step, in milliseconds.
    pub ms: f64,
    /// Its 90 % interval.
    pub interval_ms: [f64; 2],
    /// Copies of rows of tables in host memory, which run beside the kernels of the step before; `None` without such tables, or where the
    /// distribution of indices is not known.
    pub row_copies: Option<RowCopies>,
    /// What is uncertain about it, worst first.
    pub doubts: Vec<String>,
}

/// Predicts the step of a run from the description of its model and the applied rules, or returns the reason why it cannot.
///
/// # Errors
/// On a CPU; where no profile of the GPU ships; where the engine refuses the description.
pub fn predict(args: &Train, processor: &Processor, plan: &Plan, batch: u64) -> Result<StepTime, String> {
    if !processor.is_gpu() {
        return Err("none on a CPU".to_owned());
    }
    if args.gpus.get() > 1 {
        return Err("none of a job".to_owned());
    }
    let device = shipped_for(processor.name()).ok_or("no profile of this GPU ships")?;
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let step = Step::open(path, &Choice::default()).map_err(|error| error.to_string())?;
    let query = step.predict().on(device).map_err(|error| error.to_string())?.on_a_typical_host();
    let resize = args.batch.map(|batch| ResizeBatch::to(batch.get()));
    let mut rules: Vec<&dyn Rule> = resize.iter().map(|rule| rule as &dyn Rule).collect();
    rules.extend(plan.applied.iter().chain(&plan.of_device).map(|rule| &**rule));
    if args.dtype == Precision::Tf32 {
        rules.push(&Tf32);
    }
    // A GPU's session does both in every plan.
    for rule in [&PrefetchInputs as &dyn Rule, &CudaGraph] {
        if rules.iter().all(|other| other.name() != rule.name()) {
            rules.push(rule);
        }
    }
    let found =
        query.changed(&Change { rules: &rules, host_times: None }).map_err(|error| error.to_string())?;
    let after = &found.after;
    let ([mut low, mut high], mut ms) = (after.interval.map(|time| time.as_millis()), after.step.as_millis());
    let row_copies = match &plan.host {
        Some(host) => {
            let profile = pricing::device(device).map_err(|error| error.to_string())?;
            RowCopies::predict(host, &args.data, batch, &profile.spec.transfer)
        }
        None => None,
    };
    if let Some(copies) = row_copies {
        // At best they run beside the step, at worst before it.
        (low, ms, high) = (low.max(copies.ms), ms.max(copies.ms), high + copies.ms);
    }
    let doubts = after.doubts.iter().map(|doubt| doubt.text.clone()).collect();
    Ok(StepTime { ms, interval_ms: [low, high], row_copies, doubts })
}
