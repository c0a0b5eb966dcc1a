//! Search for changes that make a step shorter: every applicable rule is tried, alone and in combination.

use steptime_rewrite::{self as rewrite, Rule};
use steptime_step::Diff;
use steptime_trace::Nanos;

use crate::choose::{Remedy, remedy};
use crate::error::Error;
use crate::predict::Prediction;
use crate::query::{Query, WhatIfs};
use crate::step::Step;
use crate::whatif::{Base, Change, Pricing, WhatIf, what_if};

/// Share of the step that a change must save to be added to the combination.
const WORTH: f64 = 0.002;

/// Bottlenecks of a step, and changes that would make it shorter.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The unchanged step.
    pub before: Prediction,
    /// Applicable changes, ordered by what each saves alone.
    pub alone: Vec<Suggestion>,
    /// The best combination found: names of its changes and the step with them; `None` where fewer than two help.
    pub together: Option<(Vec<&'static str>, Prediction)>,
    /// Changes that do not apply, with reasons.
    pub not: Vec<(&'static str, String)>,
    /// Changes that were tried to make the step fit the GPU's memory; empty where it fits, or where that is unknown.
    pub to_fit: Vec<Remedy>,
    /// Samples of the step, where known.
    pub samples: Option<u64>,
}

/// A change that applies.
#[derive(Debug, Clone)]
pub struct Suggestion {
    /// The rule's name.
    pub rule: &'static str,
    /// Effects of the change on this step.
    pub why: Vec<String>,
    /// Effort of making the change.
    pub effort: &'static str,
    /// Risk of the change.
    pub risk: &'static str,
    /// The step with it.
    pub after: Prediction,
    /// Ops in which the two steps differ: removed ones are of the step before, all others of `step`.
    pub diff: Diff,
    /// Ops and tensors of the changed step.
    pub step: steptime_step::StepIr,
}

impl Suggestion {
    /// Time saved; negative where the step gets longer.
    #[must_use]
    pub fn saves(&self, before: &Prediction) -> Nanos {
        before.step - self.after.step
    }
}

impl Query<'_> {
    /// Finds the bottlenecks of the step, and the effect of each applicable change, best first.
    ///
    /// # Errors
    /// As [`Query::simulate`].
    pub fn explain(&self) -> Result<Explanation, Error> {
        self.what_ifs()?.explain()
    }
}

impl WhatIfs<'_> {
    /// Finds the bottlenecks of the step, and the effect of each applicable change, best first.
    ///
    /// # Errors
    /// As [`Query::explain`].
    pub fn explain(&self) -> Result<Explanation, Error> {
        let (step, pricing, base) = self.parts();
        let found = explain(step, &pricing, &rewrite::all(), base)?;
        let to_fit = match self.spec().filter(|_| found.before.fits == Some(false)) {
            Some(spec) => remedy::all(self, spec, step.batch()),
            None => Vec::new(),
        };
        Ok(Explanation { to_fit, ..found })
    }
}

/// Tries every rule alone, then adds them to a combination, best first, as long as each makes it shorter.
fn explain(
    step: &Step,
    pricing: &Pricing<'_>,
    rules: &[Box<dyn Rule>],
    base: &Base,
) -> Result<Explanation, Error> {
    let with = |rules: &[&dyn Rule]| -> Result<WhatIf, Error> {
        what_if(step, pricing, &Change { rules, host_times: None }, base)
    };
    let before = base.before.clone();
    let (mut alone, mut not) = (Vec::new(), Vec::new());
    for rule in rules {
        match with(&[&**rule]) {
            Ok(answer) => {
                let why = answer.audits.iter().flat_map(|audit| audit.why.clone()).collect();
                let (effort, risk) = (rule.effort(), rule.risk());
                let WhatIf { after, diff, step, .. } = answer;
                let found = Suggestion { rule: rule.name(), why, effort, risk, after, diff, step };
                alone.push((&**rule, found));
            }
            Err(Error::Rewrite { source, .. }) => not.push((rule.name(), source.source.to_string())),
            Err(Error::MeasuredAlone { unknown, .. }) => {
                not.push((rule.name(), format!("{unknown} is not known on a CPU")));
            }
            Err(other) => return Err(other),
        }
    }
    alone.sort_by_key(|(_, found)| found.after.step);
    let mut together: Vec<&dyn Rule> = Vec::new();
    let mut best: Option<Prediction> = None;
    // Changes that cost time alone are not tried in combination.
    for (rule, found) in alone.iter().filter(|(_, found)| found.after.step < before.step) {
        let reached = best.as_ref().map_or(before.step, |best| best.step);
        let least = reached.0 as f64 * (1.0 - WORTH);
        let tried = [&together[..], &[*rule]].concat();
        let after = if together.is_empty() {
            Ok(found.after.clone())
        } else {
            with(&tried).map(|answer| answer.after)
        };
        if let Ok(after) = after
            && (after.step.0 as f64) < least
        {
            (together, best) = (tried, Some(after));
        }
    }
    let names: Vec<&'static str> = together.iter().map(|rule| rule.name()).collect();
    let together = best.filter(|_| names.len() > 1).map(|best| (names, best));
    let alone = alone.into_iter().map(|(_, found)| found).collect();
    Ok(Explanation { before, alone, together, not, to_fit: Vec::new(), samples: step.batch() })
}
