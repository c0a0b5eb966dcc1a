//! Doubt: copies of the batch that are larger than any in the data of the host profile.

use steptime_cost::GuessedCopies;
use steptime_trace::Nanos;

use super::Doubt;
use crate::uncertainty::uncertainty;

/// The doubt of a step with time guessed from the rate of the host's memory, which is known within `doubts.large_copies.factor`.
pub(super) fn doubt(guessed: GuessedCopies, step: Nanos) -> Option<Doubt> {
    let share = guessed.time.0 as f64 / step.0.max(1) as f64;
    let of = &uncertainty().doubts.large_copies;
    (share >= of.threshold).then(|| Doubt {
        kind: "copies",
        text: format!(
            "{} larger than any in the host profile: {} of host time are estimated from memory bandwidth (fit a profile on recordings with \
             copies as large)",
            if guessed.copies == 1 { "a pageable copy is".into() } else { format!("{} pageable copies are", guessed.copies) },
            guessed.time
        ),
        below: -(1.0 - share.min(1.0) / of.factor).ln().max(-of.factor.ln()),
        above: (1.0 + share * (of.factor - 1.0)).ln().min(of.factor.ln()),
        no_estimate: false,
    })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;

    fn doubt_of(copies: usize, ms: i64) -> Option<Doubt> {
        doubt(GuessedCopies { copies, time: Nanos(ms * 1_000_000) }, Nanos(100_000_000))
    }

    #[test]
    fn half_a_step_that_may_be_half_or_twice_as_long() {
        let doubt = doubt_of(3, 50).unwrap();
        assert!((doubt.above - 1.5f64.ln()).abs() < 1e-12 && (doubt.below + 0.75f64.ln()).abs() < 1e-12);
        assert!(doubt.text.starts_with("3 pageable copies are larger"), "{}", doubt.text);
    }

    #[test]
    fn small_ones_are_not_mentioned_and_large_ones_bounded() {
        assert_eq!((doubt_of(0, 0), doubt_of(9, 0)), (None, None));
        let doubt = doubt_of(1, 5000).unwrap();
        assert_eq!((doubt.below, doubt.above), (LN_2, LN_2));
    }
}
