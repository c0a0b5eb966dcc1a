//! The plan of a run: rules that change its step.

use std::sync::Arc;

use steptime_eager::Model;
use steptime_rewrite::{
    Bf16, ConcatInPlace, DenseOperators, Facts, FuseBiasGradients, FuseCrossEntropy, Operators, Rule,
    RuntimeKernels, apply,
};
use steptime_runtime::{CacheableTable, DescribedStep, Program, Rank, Region, Reuse, Target};
use steptime_step::StepIr;

use crate::Failure;
use crate::error::Error;
use crate::host_tables::HostMemory;
use crate::narrow_exchanges::NarrowExchanges;
use crate::plan_choice::PlanChoice;
use crate::processor::Precision;

/// Changes of a step, and its memory.
pub struct Plan {
    /// The applied rules, in order.
    pub applied: Vec<Arc<dyn Rule>>,
    /// Rules that describe work of the device's program: it does so in every plan.
    pub of_device: Vec<Arc<dyn Rule>>,
    /// Rules that were not applied, each with the reason.
    pub skipped: Vec<(&'static str, String)>,
    /// Predicted peak of the memory of the step: most bytes of tensors that are alive at one time, without workspaces of libraries.
    pub predicted_bytes: u64,
    /// Planned memory of the program, in bytes.
    pub planned_bytes: u64,
    /// Tables in host memory, where there are some.
    pub host: Option<HostMemory>,
    /// Whether exchanges between ranks read and write matrices at their places.
    pub direct: bool,
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

    /// Changes the step of a rank of a model's job, and compiles it for a device; `direct` is whether its exchanges read and write the memory of all
    /// GPUs.
    ///
    /// # Errors
    /// Where an op of the step cannot run.
    pub fn compile(
        model: &Model,
        rank: &Rank,
        choice: &PlanChoice,
        precision: Precision,
        (target, direct): (Target, bool),
    ) -> Result<(Plan, Program), Failure> {
        let mut described = DescribedStep::of_rank(model, rank.rank() as u32)?;
        if direct {
            described.direct_exchanges();
        }
        // A rule may replace ops that the device does not run.
        let mut program = Program::for_target(&described, target, Reuse::ByLifetime);
        let adam = Program::new(&described)?.optimizer().is_some_and(|class| class.starts_with("Adam"));
        let (mut applied, mut skipped): (Vec<Arc<dyn Rule>>, _) = (Vec::new(), Vec::new());
        let ops = described.ops().clone();
        let facts = Facts::new(&ops, Some(model.batch()));
        for rule in choice.rules(precision)? {
            if of_device().iter().any(|own| own.name() == rule.name()) {
                if target == Target::Cpu {
                    skipped.push((rule.name(), "only a GPU's program works so".to_owned()));
                }
                continue;
            }
            let changed = match other_results(&*rule, adam && *choice == PlanChoice::Best) {
                Some(reason) => Err(Refusal::Rule(reason)),
                None => change(&described, &*rule, &facts, target),
            };
            match (changed, choice) {
                (Err(Refusal::Rule(reason) | Refusal::Program(reason)), _) if rule.name() == Bf16.name() => {
                    return Err(Error::Precision { precision: precision.name(), reason }.into());
                }
                (Ok(changed), _) => {
                    (described, program) = (changed.0, Ok(changed.1));
                    applied.push(rule.into());
                }
                (Err(Refusal::Program(reason)), PlanChoice::File(path)) => {
                    return Err(Error::Unrun { rule: rule.name(), path: path.clone(), reason }.into());
                }
                (Err(Refusal::Rule(reason) | Refusal::Program(reason)), _) if rule.name() == Bf16.name() => {
                    return Err(Error::Options(format!("--dtype bf16: {reason}")).into());
                }
                (Err(Refusal::Rule(_)), PlanChoice::Best)
                    if rule.name() == DenseOperators.name() && is_applied(&applied, &Operators) => {}
                (Err(Refusal::Rule(reason) | Refusal::Program(reason)), _) => {
                    skipped.push((rule.name(), reason));
                }
            }
        }
        let mut program = program?;
        let mut own: Vec<Arc<dyn Rule>> = Vec::new();
        if described.ranks() > 1 && precision == Precision::Bf16 {
            let mut narrow = described.clone();
            let all = rank.gather(narrow.narrow_exchanges(), None)?;
            if all.iter().all(|changes| **changes) {
                own.extend(
                    NarrowExchanges::between(&described.step, &narrow.step).map(|rule| Arc::new(rule) as _),
                );
                program = Program::for_target(&narrow, target, Reuse::ByLifetime)?;
                described = narrow;
            }
        }
        // The prediction is that of the step that runs.
        let mut running = described.clone();
        for rule in of_device().into_iter().filter(|_| target == Target::Cuda) {
            if apply(&mut running.step, &[&*rule], &facts).is_ok() {
                own.push(rule.into());
            }
        }
        let plan = program.plan();
        let predicted_bytes = plan.peak() - plan.bytes(Region::Arena) + plan.least_arena();
        let predicted_bytes = predicted_bytes as u64;
        let planned_bytes = program.plan().peak() as u64;
        let (host, step) = (None, described.step);
        let of_device = own;
        let plan = Plan { applied, of_device, skipped, predicted_bytes, planned_bytes, host, direct, step };
        Ok((plan, program))
    }
}

/// Rules that describe the work of a GPU's program.
fn of_device() -> [Box<dyn Rule>; 4] {
    [
        Box::new(FuseBiasGradients),
        Box::new(FuseCrossEntropy),
        Box::new(ConcatInPlace),
        Box::new(RuntimeKernels),
    ]
}

/// Whether a rule is among those that were applied.
fn is_applied(applied: &[Arc<dyn Rule>], rule: &dyn Rule) -> bool {
    applied.iter().any(|own| own.name() == rule.name())
}

/// Returns the reason why a rule would train another model.
fn other_results(rule: &dyn Rule, adam: bool) -> Option<String> {
    (adam && rule.name() == Operators.name())
        .then(|| "Adam of the operators moves only the rows that were looked up: other results".to_owned())
}

/// Reason why a rule does not change a step.
enum Refusal {
    /// The rule does not apply.
    Rule(String),
    /// No program runs the changed step.
    Program(String),
}

/// The step after a rule, and its program.
fn change(
    described: &DescribedStep,
    rule: &dyn Rule,
    facts: &Facts<'_>,
    target: Target,
) -> Result<(DescribedStep, Program), Refusal> {
    let mut changed = described.clone();
    apply(&mut changed.step, &[rule], facts).map_err(|error| Refusal::Rule(error.source.to_string()))?;
    changed.separate_rounds().map_err(|error| Refusal::Program(error.to_string()))?;
    let program = Program::for_target(&changed, target, Reuse::ByLifetime)
        .map_err(|error| Refusal::Program(error.to_string()))?;
    Ok((changed, program))
}
