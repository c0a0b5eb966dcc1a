//! Prediction of the step that is run on a GPU, by the same rules.

use std::path::Path;

use serde::Serialize;
use steptime_aten::optimizer::Form;
use steptime_predict::pricing::shipped_for;
use steptime_predict::{Change, Choice, Step};
use steptime_rewrite::{
    CudaGraph, FuseLinear, Operators, Optimizer, PrefetchInputs, ResizeBatch, Rule, Tf32,
};

use crate::arguments::Train;
use crate::processor::{Precision, Processor};

/// Predicted time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepTime {
    /// Time of a step, in milliseconds.
    pub ms: f64,
    /// Its 90 % interval.
    pub interval_ms: [f64; 2],
}

/// Predicts the step of a run from the description of its model and the applied rules, or returns the reason why it cannot.
///
/// # Errors
/// On a CPU; where no profile of the GPU ships; where the engine refuses the description.
pub fn predict(args: &Train, processor: &Processor, applied: &[&str]) -> Result<StepTime, String> {
    if !processor.is_gpu() {
        return Err("none on a CPU".to_owned());
    }
    let device = shipped_for(processor.name()).ok_or("no profile of this GPU ships")?;
    let path = args.model.as_deref().unwrap_or(Path::new(""));
    let step = Step::open(path, &Choice::default()).map_err(|error| error.to_string())?;
    let query = step.predict().on(device).map_err(|error| error.to_string())?.on_a_typical_host();
    let resize = args.batch.map(|batch| ResizeBatch::to(batch.get()));
    let fused = Optimizer { form: Form::Fused };
    let named: [&dyn Rule; 3] = [&Operators, &FuseLinear, &fused];
    let mut rules: Vec<&dyn Rule> = resize.iter().map(|rule| rule as &dyn Rule).collect();
    rules.extend(named.into_iter().filter(|rule| applied.contains(&rule.name())));
    if args.dtype == Precision::Tf32 {
        rules.push(&Tf32);
    }
    rules.extend([&PrefetchInputs as &dyn Rule, &CudaGraph]);
    let found =
        query.changed(&Change { rules: &rules, host_times: None }).map_err(|error| error.to_string())?;
    let after = &found.after;
    Ok(StepTime { ms: after.step.as_millis(), interval_ms: after.interval.map(|time| time.as_millis()) })
}
