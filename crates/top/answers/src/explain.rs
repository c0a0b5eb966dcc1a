//! Bottlenecks of a step, and changes that would make it shorter.

use serde::Serialize;
use steptime_graph::StepGraph;
use steptime_predict::{Explanation, INTERVAL_LEVEL, Prediction, Step, Suggestion};

use super::choose::RemedyEntry;
use super::doubts::DoubtEntry;
use super::predict::{Piece, PredictionReport, pieces};
use super::shared::{SCHEMA, ms};
use super::what_if::{Side, why};

/// Bottlenecks of a step, and changes that would make it shorter, best first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `explain`.
    pub command: &'static str,
    /// The input, as given.
    pub input: String,
    /// The recording: its folder or file.
    pub name: String,
    /// The GPU predicted for.
    pub device: Option<String>,
    /// The unchanged step.
    pub before: Side,
    /// Places on the critical path, as shares of the step, largest first.
    pub bound: Vec<Bottleneck>,
    /// Applicable changes, ordered by what each saves alone.
    pub suggestions: Vec<SuggestionEntry>,
    /// The best combination found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<Combination>,
    /// Changes that do not apply.
    pub not_applicable: Vec<InapplicableChange>,
    /// Changes that were tried to make the step fit the GPU's memory, where it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_fit: Vec<RemedyEntry>,
    /// The probability of the intervals.
    pub interval_level: f64,
    /// Assumptions and doubts, worst first.
    pub doubts: Vec<DoubtEntry>,
    /// Repairs, assumptions and guesses, in words; all are among the doubts too.
    pub warnings: Vec<String>,
    /// Title of the step. Not in the JSON.
    #[serde(skip)]
    pub title: String,
}

/// A place on the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bottleneck {
    /// `device`, `launch queue`, a host thread's part of the step, ...
    pub place: &'static str,
    /// Its share of the step.
    pub share: f64,
}

/// A change that applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuggestionEntry {
    /// Name of the rule.
    pub name: &'static str,
    /// Time saved, milliseconds; negative where the step gets longer.
    pub saves_ms: f64,
    /// The step with it.
    pub after: Side,
    /// Effort of making the change.
    pub effort: &'static str,
    /// Risk of the change.
    pub risk: &'static str,
    /// Effects of the change on this step.
    pub what: Vec<String>,
    /// Causes of the difference.
    pub why: Vec<String>,
}

/// A combination of changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Combination {
    /// Names of the rules.
    pub names: Vec<&'static str>,
    /// Time saved together, milliseconds.
    pub saves_ms: f64,
    /// The step with them.
    pub after: Side,
}

/// A change that does not apply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InapplicableChange {
    /// Name of the rule.
    pub name: &'static str,
    /// Reason why it does not apply.
    pub reason: String,
}

impl ExplainReport {
    /// Makes the answer. `step` is the step that was explained.
    #[must_use]
    pub fn from_explanation(explanation: &Explanation, step: &Step) -> ExplainReport {
        let before = &explanation.before;
        let saves = |after: &Prediction| ms(before.step - after.step);
        let suggested = |found: &Suggestion| SuggestionEntry {
            name: found.rule,
            saves_ms: saves(&found.after),
            after: Side::new(&found.after, explanation.samples),
            effort: found.effort,
            risk: found.risk,
            what: found.why.clone(),
            why: why(before, &found.after),
        };
        let together = explanation.together.as_ref().map(|(names, after)| Combination {
            names: names.clone(),
            saves_ms: saves(after),
            after: Side::new(after, explanation.samples),
        });
        let not =
            |(name, reason): &(&'static str, String)| InapplicableChange { name, reason: reason.clone() };
        let predicted: PredictionReport = PredictionReport::from_prediction(before, step);
        ExplainReport {
            schema: SCHEMA,
            command: "explain",
            input: step.input.display().to_string(),
            name: step.name.clone(),
            device: predicted.device.clone(),
            before: Side::new(before, explanation.samples),
            bound: bound(&predicted),
            suggestions: explanation.alone.iter().map(suggested).collect(),
            together,
            not_applicable: explanation.not.iter().map(not).collect(),
            to_fit: explanation.to_fit.iter().map(|remedy| RemedyEntry::new(remedy, None)).collect(),
            interval_level: INTERVAL_LEVEL,
            doubts: predicted.doubts,
            warnings: predicted.warnings,
            title: step.title(),
        }
    }
}

/// Places on the critical path, largest share first.
#[must_use]
pub fn bound(predicted: &PredictionReport) -> Vec<Bottleneck> {
    shares(predicted.critical_path.as_deref().unwrap_or_default())
}

/// Places on the critical path of a prediction of `graph`, which may be changed.
#[must_use]
pub fn bound_of(graph: &StepGraph, prediction: &Prediction) -> Vec<Bottleneck> {
    shares(&pieces(graph, &prediction.path))
}

fn shares(pieces: &[Piece]) -> Vec<Bottleneck> {
    let mut places: Vec<Bottleneck> = Vec::new();
    let total: f64 = pieces.iter().map(|piece| piece.ms).sum();
    for piece in pieces {
        let share = piece.ms / total.max(f64::MIN_POSITIVE);
        match places.iter_mut().find(|known| known.place == piece.place) {
            Some(known) => known.share += share,
            None => places.push(Bottleneck { place: piece.place, share }),
        }
    }
    places.sort_by(|a, b| b.share.total_cmp(&a.share));
    places
}
