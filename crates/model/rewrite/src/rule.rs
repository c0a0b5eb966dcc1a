//! What a rule is.

use std::borrow::Cow;
use std::fmt::Debug;

use steptime_aten::OpSet;
use steptime_graph::Modules;
use steptime_step::{Diff, Patch, Step};

use crate::error::{Error, Refused};
use crate::known::{Known, Unchanged};
use crate::stage::Stage;

/// What a rule may know of a step beside its ops.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The ops that are known.
    pub ops: &'a OpSet,
    /// Samples in a batch, where the recording says it.
    pub batch: Option<u64>,
    /// The step before any change, where it is asked about again and again.
    pub unchanged: Option<Unchanged<'a>>,
    /// Which modules ran the ops of the recording, where that is known.
    pub modules: Option<&'a Modules>,
}

impl<'a> Facts<'a> {
    /// Of a step whose ops mean what a set says; `batch` is the number of samples, where the recording says it.
    #[must_use]
    pub fn new(ops: &'a OpSet, batch: Option<u64>) -> Facts<'a> {
        Facts { ops, batch, unchanged: None, modules: None }
    }

    /// What was found of a step before, where that is the one that nothing has changed.
    pub(crate) fn known(&self, step: &Step) -> Option<&'a Known> {
        self.unchanged.filter(|unchanged| std::ptr::eq(unchanged.step, step)).map(|unchanged| unchanged.known)
    }
}

/// A change that can be made to a step.
pub trait Rule: Debug + Send + Sync {
    /// Its name, as the command line has it.
    fn name(&self) -> &'static str;

    /// When it is applied among others.
    fn stage(&self) -> Stage;

    /// What it takes to make the change, in words.
    fn effort(&self) -> &'static str {
        "unknown"
    }

    /// What may speak against it, in words.
    fn risk(&self) -> &'static str {
        "none known"
    }

    /// What is not known of the change, in words, and how much longer the step may be for it: half-width of 90 %, logarithm
    /// of a factor.
    fn doubt(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// Samples of a step with it, where there were so many before.
    fn samples(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    /// The patches that it wants to a step.
    ///
    /// # Errors
    /// Where it does not apply: what is missing, or in the way.
    fn patches(&self, step: &Step, facts: &Facts<'_>) -> Result<Vec<Patch>, Error>;
}

/// What a rule did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The rule.
    pub rule: &'static str,
    /// What it did and why, a line each.
    pub why: Vec<String>,
    /// Assumptions, in words.
    pub doubts: Vec<String>,
    /// How many ops it removed, put in and changed.
    pub counts: [usize; 3],
}

/// Applies rules in the order of their stages, whatever order they are given in. On an error the step is as it was.
///
/// # Errors
/// Where a rule does not apply, or what it makes is no step.
pub fn apply(step: &mut Step, rules: &[&dyn Rule], facts: &Facts<'_>) -> Result<Vec<Audit>, Refused> {
    let (changed, audits) = applied(step, rules, facts)?;
    *step = changed;
    Ok(audits)
}

/// The step that rules make of one, and what each did, in the order in which they were applied.
///
/// A rule that would change the step alone, and finds nothing left to do after others, changes nothing and says so.
///
/// # Errors
/// As [`apply`].
pub fn applied(step: &Step, rules: &[&dyn Rule], facts: &Facts<'_>) -> Result<(Step, Vec<Audit>), Refused> {
    let mut rules = rules.to_vec();
    rules.sort_by_key(|rule| (rule.stage(), rule.name()));
    let mut now = Cow::Borrowed(step);
    let mut audits = Vec::with_capacity(rules.len());
    for (at, rule) in rules.iter().enumerate() {
        let refused = |source| Refused { rule: rule.name(), source };
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

/// Which rule left nothing to do for one that would change the step alone, in words; `None` where none did.
fn done_before(
    step: &Step,
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
