//! The trait of rules, and their application.

use std::borrow::Cow;
use std::fmt::Debug;

use steptime_aten::OpSet;
use steptime_graph::Modules;
use steptime_step::{Diff, Patch, StepIr};

use crate::error::{Error, RuleError};
use crate::findings_cache::{FindingsCache, UnchangedStep};
use crate::rule_order::Stage;

/// Facts about a step that its ops do not hold.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Known ops.
    pub ops: &'a OpSet,
    /// Samples per batch, where the recording has it.
    pub batch: Option<u64>,
    /// The unchanged step, where many queries start from the same one.
    pub unchanged: Option<UnchangedStep<'a>>,
    /// Modules that ran the recorded ops, where known.
    pub modules: Option<&'a Modules>,
}

impl<'a> Facts<'a> {
    /// Facts for a step whose ops have the semantics of `ops`; `batch` is the number of samples, where the recording has it.
    #[must_use]
    pub fn new(ops: &'a OpSet, batch: Option<u64>) -> Facts<'a> {
        Facts { ops, batch, unchanged: None, modules: None }
    }

    /// Cached findings, where `step` is the unchanged one.
    pub(crate) fn known(&self, step: &StepIr) -> Option<&'a FindingsCache> {
        self.unchanged.filter(|unchanged| std::ptr::eq(unchanged.step, step)).map(|unchanged| unchanged.known)
    }
}

/// A change that can be made to a step.
pub trait Rule: Debug + Send + Sync {
    /// Name, as on the command line.
    fn name(&self) -> &'static str;

    /// Stage in which the rule is applied.
    fn stage(&self) -> Stage;

    /// Effort of the change, in words.
    fn effort(&self) -> &'static str {
        "unknown"
    }

    /// Risk of the change, in words.
    fn risk(&self) -> &'static str {
        "none known"
    }

    /// Unknown effect of the change, in words, and by how much it may lengthen the step: half-width of the 90 % interval, as the logarithm of a
    /// factor.
    fn doubt(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// Samples of a step with the change, given those without it.
    fn samples(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    /// Patches of the change to a step.
    ///
    /// # Errors
    /// Where the rule does not apply: something is missing, or prevents it.
    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error>;
}

/// Changes made by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Name of the rule.
    pub rule: &'static str,
    /// Changes and their reasons, one per line.
    pub why: Vec<String>,
    /// Assumptions, in words.
    pub doubts: Vec<String>,
    /// Numbers of removed, inserted and changed ops.
    pub counts: [usize; 3],
}

/// Applies rules in the order of their stages, not in the given order. On an error the step is unchanged.
///
/// # Errors
/// Where a rule does not apply, or the patched step is invalid.
pub fn apply(step: &mut StepIr, rules: &[&dyn Rule], facts: &Facts<'_>) -> Result<Vec<Audit>, RuleError> {
    let (changed, audits) = applied(step, rules, facts)?;
    *step = changed;
    Ok(audits)
}

/// The step after all rules, and the audit of each rule in the order of application.
///
/// A rule that applies to the original step but has nothing left to do after other rules changes nothing; its audit says so.
///
/// # Errors
/// As [`apply`].
pub fn applied(
    step: &StepIr,
    rules: &[&dyn Rule],
    facts: &Facts<'_>,
) -> Result<(StepIr, Vec<Audit>), RuleError> {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| (rule.stage(), rule.name()));
    let mut now = Cow::Borrowed(step);
    let mut audits = Vec::with_capacity(rules.len());
    for (at, rule) in rules.iter().enumerate() {
        let refused = |source| RuleError { rule: rule.name(), source };
        let patches = match rule.patches(&now, facts) {
            Ok(patches) => patches,
            Err(source) => {
                let why = done_before(step, &rules[..at], *rule, &source, facts);
                let why = why.ok_or_else(|| refused(source))?;
                audits.push(Audit { rule: rule.name(), why: vec![why], doubts: Vec::new(), counts: [0; 3] });
                continue;
            }
        };
        let changed = match patches.is_empty() {
            true => None,
            false => Some(now.applied_in_turn(&patches, facts.ops).map_err(|source| refused(source.into()))?),
        };
        let (mut why, mut doubts) = (Vec::new(), Vec::new());
        for patch in patches {
            why.push(patch.why);
            doubts.extend(patch.doubts);
        }
        let counts = changed.as_ref().map_or([0; 3], |changed| Diff::between(&now, changed).counts());
        audits.push(Audit { rule: rule.name(), why, doubts, counts });
        if let Some(changed) = changed {
            now = Cow::Owned(changed);
        }
    }
    Ok((now.into_owned(), audits))
}

/// The rule that left nothing to do for one that applies to the original step, in words; `None` where there is none.
fn done_before(
    step: &StepIr,
    before: &[&dyn Rule],
    rule: &dyn Rule,
    reason: &Error,
    facts: &Facts<'_>,
) -> Option<String> {
    let nothing = |error: &Error| matches!(error, Error::NothingToDo { .. } | Error::NoBags { .. });
    if before.is_empty() || !nothing(reason) || rule.patches(step, facts).is_err() {
        return None;
    }
    let did = (1..=before.len()).find(|&count| {
        let now = applied(step, &before[..count], facts);
        now.is_ok_and(|(now, _)| rule.patches(&now, facts).is_err_and(|error| nothing(&error)))
    })?;
    Some(format!("nothing is left to do after {}: {reason}", before[did - 1].name()))
}
