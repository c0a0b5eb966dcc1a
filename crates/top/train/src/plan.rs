//! The plan of a run: rules that change its step.

use clap::ValueEnum;
use steptime_aten::optimizer::Form;
use steptime_eager::Model;
use steptime_rewrite::{Facts, FuseLinear, Operators, Optimizer, Rule, apply};
use steptime_runtime::{CacheableTable, DescribedStep, Program, Region, Reuse, Target};
use steptime_step::{MemoryKind, Peak, StepIr};

use crate::Failure;
use crate::host_tables::HostMemory;

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
    /// Tables in host memory, where there are some.
    pub host: Option<HostMemory>,
    /// The step after the changes.
    pub step: StepIr,
}

impl Plan {
    /// Memory of a program in bytes, the planned or the predicted, without the tables that can be in host memory.
    pub fn bytes_without_tables(&self, program: &Program) -> usize {
        let weights = |table: CacheableTable| 4 * table.shape[0] * table.shape[1];
        let tables: usize = program.cacheable_tables().into_iter().map(weights).sum();
        (self.predicted_bytes.max(self.planned_bytes) as usize).saturating_sub(tables)
    }

    /// Memory that a program needs on its device, in bytes: with the optimizer states of tables on a GPU.
    pub fn needed_bytes(&self, program: &Program) -> u64 {
        let planned = self.predicted_bytes.max(self.planned_bytes);
        if self.host.is_some() {
            return planned;
        }
        let tables: usize = program.cacheable_tables().iter().map(CacheableTable::bytes).sum();
        planned.max((self.bytes_without_tables(program) + tables) as u64)
    }

    /// Notes the tables that a program has in host memory.
    pub fn set_host(&mut self, host: HostMemory, program: &Program) {
        let moved = program.plan().bytes(Region::Host) as u64;
        self.predicted_bytes = self.predicted_bytes.saturating_sub(moved) + host.device_bytes;
        self.planned_bytes = program.plan().peak() as u64 + host.device_bytes;
        self.host = Some(host);
    }

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
        let (host, step) = (None, described.step);
        Ok((Plan { applied, skipped, predicted_bytes, planned_bytes, host, step }, program))
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
