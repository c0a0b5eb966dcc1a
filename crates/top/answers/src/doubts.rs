//! Assumptions of an answer and doubts about it: one list, worst first.

mod assumptions;
mod notes;

use serde::Serialize;

pub(super) use self::assumptions::host_doubt;
pub(super) use self::notes::graph_notes;
use steptime_predict::{Doubt, Prediction, QueryEcho, Step};

/// A reason to trust an answer less.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubtEntry {
    /// Kind of doubt.
    pub kind: &'static str,
    /// Description in words.
    pub text: String,
    /// Whether no single time can be given.
    pub no_estimate: bool,
    /// Factor by which the time may be off in either direction, at the interval's level; `None` where unknown.
    pub factor: Option<f64>,
}

impl DoubtEntry {
    /// Converts a doubt.
    #[must_use]
    pub fn new(doubt: &Doubt) -> DoubtEntry {
        DoubtEntry {
            kind: doubt.kind,
            text: doubt.text.clone(),
            no_estimate: doubt.no_estimate,
            factor: factor(doubt.below.max(doubt.above)),
        }
    }

    /// Makes a note: the interval is not wider for it, or is already.
    fn note(kind: &'static str, text: impl Into<String>) -> DoubtEntry {
        DoubtEntry { kind, text: text.into(), no_estimate: false, factor: None }
    }

    /// Sort key in a list: first a step without a time, then a step that does not run, then the largest factor.
    fn rank(&self) -> (u8, f64) {
        match (self.no_estimate, self.kind) {
            (true, _) => (0, 0.0),
            (_, "memory") => (1, 0.0),
            _ => (2, -self.factor.unwrap_or(1.0)),
        }
    }
}

/// Factor of a half-width, which is of the logarithm; `None` for zero.
fn factor(half_width: f64) -> Option<f64> {
    (half_width > 0.0).then(|| half_width.exp())
}

/// Sorts doubts, worst first; equal ones keep their order.
pub(super) fn worst_first(mut doubts: Vec<DoubtEntry>) -> Vec<DoubtEntry> {
    doubts.sort_by(|a, b| {
        let (a, b) = (a.rank(), b.rank());
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    doubts
}

/// Doubts and warnings of an answer.
pub(super) struct Caveats {
    /// All doubts, worst first.
    pub(super) doubts: Vec<DoubtEntry>,
    /// Repairs, assumptions and guesses, in words; also part of `doubts`.
    pub(super) warnings: Vec<String>,
}

impl Caveats {
    /// Collects doubts of an answer that gives the time of `shown` and whose kernels were priced as those of `priced`: the same
    /// prediction, or the step before a change.
    pub(super) fn collect(
        asked: &QueryEcho,
        step: &Step,
        priced: Option<&Prediction>,
        shown: Option<&Prediction>,
    ) -> Caveats {
        let found = shown.map_or(&[][..], |shown| &shown.doubts);
        let mut notes = assumptions::all(asked, step, priced, shown);
        notes.extend(notes::all(asked, step, priced));
        // Launches without a price are reported once.
        let unpriced = found.iter().any(|doubt| doubt.kind == "unpriced");
        notes.retain(|note| !(unpriced && note.kind == "unpriced"));
        let warnings = notes.iter().map(|note| note.text.clone()).collect();
        let doubts = found.iter().map(DoubtEntry::new).chain(notes).collect();
        Caveats { doubts: worst_first(doubts), warnings }
    }

    /// Collects doubts of a prediction alone.
    pub(super) fn from_prediction(prediction: &Prediction, step: &Step) -> Caveats {
        Caveats::collect(&prediction.asked, step, Some(prediction), Some(prediction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(kind: &'static str, factor: Option<f64>, no_estimate: bool) -> DoubtEntry {
        DoubtEntry { kind, text: kind.to_owned(), no_estimate, factor }
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
