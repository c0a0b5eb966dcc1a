//! What an answer assumes, and what speaks against it: one list, the worst first.

mod assumed;
mod notes;

use serde::Serialize;

pub(super) use self::assumed::of_host;
pub(super) use self::notes::of_graph;
use crate::asked::Asked;
use crate::doubt::Doubt;
use crate::predict::Prediction;
use crate::step::Step;

/// A reason to believe an answer less.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtSaid {
    /// What it is.
    pub kind: &'static str,
    /// In words.
    pub text: String,
    /// Whether no single time can be given.
    pub no_estimate: bool,
    /// How many times as long or as short what it is of may take, at the level of the interval; `None` where that is not known.
    pub factor: Option<f64>,
}

impl DoubtSaid {
    /// Of a doubt.
    #[must_use]
    pub fn new(doubt: &Doubt) -> DoubtSaid {
        DoubtSaid {
            kind: doubt.kind,
            text: doubt.text.clone(),
            no_estimate: doubt.no_estimate,
            factor: factor(doubt.below.max(doubt.above)),
        }
    }

    /// A note: the interval is no wider for it, or has it already.
    fn note(kind: &'static str, text: impl Into<String>) -> DoubtSaid {
        DoubtSaid { kind, text: text.into(), no_estimate: false, factor: None }
    }

    /// The place in a list: a step of which no time is known, one that does not run, then what may be off the most.
    fn rank(&self) -> (u8, f64) {
        match (self.no_estimate, self.kind) {
            (true, _) => (0, 0.0),
            (_, "memory") => (1, 0.0),
            _ => (2, -self.factor.unwrap_or(1.0)),
        }
    }
}

/// The factor of a half-width, which is of its logarithm; none of nothing.
fn factor(half_width: f64) -> Option<f64> {
    (half_width > 0.0).then(|| half_width.exp())
}

/// Doubts, the worst first; those that are as bad stay in their order.
pub(super) fn worst_first(mut doubts: Vec<DoubtSaid>) -> Vec<DoubtSaid> {
    doubts.sort_by(|a, b| {
        let (a, b) = (a.rank(), b.rank());
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    doubts
}

/// What an answer says of how well it is known.
pub(super) struct Said {
    /// All of it, the worst first.
    pub(super) doubts: Vec<DoubtSaid>,
    /// What was repaired, assumed or guessed, in words; part of the list above.
    pub(super) warnings: Vec<String>,
}

impl Said {
    /// Of an answer that gives the time of `shown`, and whose kernels were priced as those of `priced`: the same, or the step
    /// before a change.
    pub(super) fn of(
        asked: &Asked,
        step: &Step,
        priced: Option<&Prediction>,
        shown: Option<&Prediction>,
    ) -> Said {
        let found = shown.map_or(&[][..], |shown| &shown.doubts);
        let mut notes = assumed::all(asked, step, priced, shown);
        notes.extend(notes::all(asked, step, priced));
        // What has no price is said once.
        let unpriced = found.iter().any(|doubt| doubt.kind == "unpriced");
        notes.retain(|note| !(unpriced && note.kind == "unpriced"));
        let warnings = notes.iter().map(|note| note.text.clone()).collect();
        let doubts = found.iter().map(DoubtSaid::new).chain(notes).collect();
        Said { doubts: worst_first(doubts), warnings }
    }

    /// Of a prediction by itself.
    pub(super) fn of_prediction(prediction: &Prediction, step: &Step) -> Said {
        Said::of(&prediction.asked, step, Some(prediction), Some(prediction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(kind: &'static str, factor: Option<f64>, no_estimate: bool) -> DoubtSaid {
        DoubtSaid { kind, text: kind.to_owned(), no_estimate, factor }
    }

    #[test]
    fn the_worst_comes_first_and_equals_keep_their_order() {
        let all = vec![
            doubt("steps", None, false),
            doubt("replay", Some(1.2), false),
            doubt("host", Some(2.0), false),
            doubt("memory", None, false),
            doubt("repairs", None, false),
            doubt("unpriced", Some(1.1), true),
        ];
        let kinds: Vec<&str> = worst_first(all).into_iter().map(|doubt| doubt.kind).collect();
        assert_eq!(kinds, ["unpriced", "memory", "host", "replay", "steps", "repairs"]);
    }
}
