//! The plan of a run: rules that change its step.

use clap::ValueEnum;
use steptime_aten::optimizer::Form;
use steptime_eager::Model;
use steptime_rewrite::{Facts, FuseLinear, Operators, Optimizer, Rule, apply};
use steptime_runtime::{DescribedStep, Program, Reuse, Target};
use steptime_step::{MemoryKind, Peak, StepIr};

use crate::Failure;

/// Changes of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanName {
    /// The step of PyTorch eager
    None,
    /// All rules that shorten the step on this device
    Best,
}

/// Changes of a step, and its memory.
pub struct Plan {
    /// Names of the applied rules.
    pub applied: Vec<&'static str>,
    /// Rules that were not applied, each with the reason.
    pub skipped: Vec<(&'static str, String)>,
    /// Predicted peak of the memory of the step, without workspaces of libraries, in bytes.
    pub predicted_bytes: u64,
    /// Planned memory of the program, in bytes.
    pub planned_bytes: u64,
    /// The step after the changes.
    pub step: StepIr,
}

impl Plan {
    /// Changes the step of a model, and compiles it for a device.
    ///
    /// # Errors
    /// Where an op of the step cannot run.
    pub fn compile(model: &Model, name: PlanName, target: Target) -> Result<(Plan, Program), Failure> {
        let mut described = DescribedStep::new(model)?;
        // A rule may replace ops that the device does not run.
        let mut program = Program::for_target(&described, target, Reuse::ByLifetime);
        let adam = Program::new(&described)?.optimizer().is_some_and(|class| class.starts_with("Adam"));
        let (mut applied, mut skipped) = (Vec::new(), Vec::new());
        let fused = Optimizer { form: Form::Fused };
        let rules: [&dyn Rule; 3] = [&Operators, &FuseLinear, &fused];
        let ops = described.ops().clone();
        let facts = Facts::new(&ops, Some(model.batch()));
        for rule in rules.into_iter().filter(|_| name == PlanName::Best) {
            let changed = match other_results(rule, adam) {
                Some(reason) => Err(reason),
                None => change(&described, rule, &facts, target),
            };
            match changed {
                Ok(changed) => {
                    (described, program) = (changed.0, Ok(changed.1));
                    applied.push(rule.name());
                }
                Err(reason) => skipped.push((rule.name(), reason)),
            }
        }
        let program = program?;
        // The prediction is that of the step that runs.
        let peak = Peak::find(&described.step, &described.scheduled(), None);
        // Workspaces of libraries are those of a GPU.
        let predicted_bytes = peak.total() - peak.bytes_of(MemoryKind::Workspace);
        let planned_bytes = program.plan().peak() as u64;
        Ok((Plan { applied, skipped, predicted_bytes, planned_bytes, step: described.step }, program))
    }
}

/// Returns the reason why a rule would train another model.
fn other_results(rule: &dyn Rule, adam: bool) -> Option<String> {
    (adam && rule.name() == Operators.name())
        .then(|| "Adam of the operators moves only the rows that were looked up: other results".to_owned())
}

/// The step after a rule, and its program.
fn change(
    described: &DescribedStep,
    rule: &dyn Rule,
    facts: &Facts<'_>,
    target: Target,
) -> Result<(DescribedStep, Program), String> {
    let mut changed = described.clone();
    apply(&mut changed.step, &[rule], facts).map_err(|error| error.source.to_string())?;
    let program =
        Program::for_target(&changed, target, Reuse::ByLifetime).map_err(|error| error.to_string())?;
    Ok((changed, program))
}
