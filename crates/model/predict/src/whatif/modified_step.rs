//! A step changed by rules, with its schedule: the same for every GPU and host that it is priced for.

use steptime_rewrite::{self as rewrite, Audit, Facts, Rule, RuleError, UnchangedStep};
use steptime_step::{Origin, ReusedRows, ScheduledStep};

use super::{Base, settings};
use crate::doubt::Doubt;
use crate::error::Error;
use crate::plausibility::check_sizes;
use crate::pricing::{self, Launch};
use crate::step::Step;
use crate::time_sources::Kernels;

/// A changed step, which [`crate::WhatIfs::outcomes`] prices for any GPU and host.
pub struct ModifiedStep {
    /// Effects of each rule, with reasons.
    pub audits: Vec<Audit>,
    /// Its ops and tensors.
    pub(crate) step: steptime_step::StepIr,
    /// Schedule of the changed step.
    pub(crate) scheduled: ScheduledStep,
    /// Schedule before capture, and the mapping of its rows to those after; `None` where no CUDA graph launches any of it.
    pub(super) captured: Option<(ScheduledStep, ReusedRows)>,
    /// Launches of its ops, for the distribution of lookups and the settings in use.
    pub(crate) launches: Vec<Launch>,
    /// Doubts from the rules.
    pub(super) doubts: Vec<Doubt>,
}

impl ModifiedStep {
    /// Whether any rule found something to change.
    pub(crate) fn is_changed(&self) -> bool {
        self.audits.iter().any(|audit| !audit.why.is_empty())
    }

    /// Applies rules to a step; `base` is the step before.
    ///
    /// # Errors
    /// Fails where a rule does not apply.
    pub(crate) fn apply(
        recorded: &Step,
        base: &Base,
        rules: &[&dyn Rule],
        kernels: &Kernels<'_>,
    ) -> Result<ModifiedStep, Error> {
        let unchanged = Some(UnchangedStep { step: &base.step, known: &base.known });
        let modules = Some(&base.modules);
        let facts = Facts { ops: &recorded.ops, batch: recorded.batch(), unchanged, modules };
        let before = &base.step;
        let (step, audits) = rewrite::applied(before, rules, &facts)
            .map_err(|source| Error::Rewrite { path: recorded.path.clone(), source })?;
        if recorded.ran_on_cpu() {
            known_on_cpu(recorded, &step)?;
        }
        let flat = steptime_step::schedule(&step, before, &recorded.graph, &recorded.ops);
        if let (Some(op), Some(rule)) = (flat.circle(), rules.last()) {
            let source = steptime_step::Error::Circle { op: op.to_owned() }.into();
            let source = RuleError { rule: rule.name(), source };
            return Err(Error::Rewrite { path: recorded.path.clone(), source });
        }
        let (indices, set) = settings(kernels);
        let lookups = recorded.arguments.lookups();
        let launches =
            pricing::lower_changed(&step, &flat, &indices, recorded.settings(set), &recorded.ops, lookups);
        check_sizes(&recorded.path, &flat.graph, &launches)?;
        let by_rule = rules.iter().filter_map(|rule| rule.doubt());
        let by_rule = by_rule.map(|(text, above)| (text.to_owned(), above));
        let granted = audits.iter().flat_map(|audit| &audit.doubts).map(|text| (text.clone(), 0.0));
        let doubts = by_rule.chain(granted).map(|(text, above)| Doubt {
            kind: "rule",
            text,
            below: 0.0,
            above,
            no_estimate: false,
        });
        let doubts = doubts.collect();
        let (scheduled, captured) = if step.ops.iter().any(|op| op.captured) {
            let replayed = steptime_step::captured(&step, &flat);
            let carried = replayed.carried.over(&flat.carried);
            let ScheduledStep { graph, ops, carried: through } = replayed;
            (ScheduledStep { graph, ops, carried }, Some((flat, through)))
        } else {
            (flat, None)
        };
        Ok(ModifiedStep { audits, step, scheduled, captured, launches, doubts })
    }

    /// Schedule before any of it is captured.
    pub(crate) fn flat(&self) -> &ScheduledStep {
        self.captured.as_ref().map_or(&self.scheduled, |(flat, _)| flat)
    }

    /// Mapping of the rows before capture to those after.
    pub(super) fn after_capture(&self) -> Option<&ReusedRows> {
        self.captured.as_ref().map(|(_, through)| through)
    }
}

/// Checks that all ops of a changed step have their measured time on a CPU.
fn known_on_cpu(recorded: &Step, step: &steptime_step::StepIr) -> Result<(), Error> {
    let new = |op: &steptime_step::OpId| {
        let row = &step.ops[*op];
        row.captured || !matches!(row.origin, Origin::Recorded(_))
    };
    match step.running().into_iter().find(new) {
        Some(op) => Err(Error::MeasuredAlone {
            path: recorded.path.clone(),
            unknown: format!("the time of {} after the change", step.ops[op].name),
        }),
        None => Ok(()),
    }
}
