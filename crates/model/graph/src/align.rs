//! Matches the marks of one step with those of the template step.

use similar::{Algorithm, DiffOp};

use crate::marks::Label;

/// Limit of a full match: the template's marks times the step's marks, each counted between the common beginning and end. Above it only
/// the beginning and end are matched.
const LARGEST_TABLE: usize = 400_000_000;

/// Positions of the template's marks in a step.
pub(crate) enum Matches {
    /// The step has exactly the template's marks: their number.
    All(usize),
    /// For each mark of the template, its position in the step, or `None` where the step lacks it.
    Some(Vec<Option<u32>>),
}

impl Matches {
    /// The position in the step of each mark of the template.
    pub(crate) fn places(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        let (all, some) = match self {
            Matches::All(marks) => (*marks, &[][..]),
            Matches::Some(places) => (0, &places[..]),
        };
        (0..all).map(Some).chain(some.iter().map(|place| place.map(|place| place as usize)))
    }
}

/// Matches the marks of a step with those of the template.
///
/// Equal sequences, the ordinary case, cost one comparison; others are matched by their longest common
/// subsequence, very long ones by their common beginning and end.
pub(crate) fn align(template: &[Label], step: &[Label]) -> Matches {
    if template == step {
        return Matches::All(template.len());
    }
    let mut at = vec![None; template.len()];
    let prefix = template.iter().zip(step).take_while(|(a, b)| a == b).count();
    let rest = template.len().min(step.len()) - prefix;
    let suffix = template.iter().rev().zip(step.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    for (i, slot) in at.iter_mut().enumerate().take(prefix) {
        *slot = Some(i as u32);
    }
    for i in 1..=suffix {
        at[template.len() - i] = Some((step.len() - i) as u32);
    }
    let (old, new) = (&template[prefix..template.len() - suffix], &step[prefix..step.len() - suffix]);
    if old.len().saturating_mul(new.len()) <= LARGEST_TABLE {
        for op in similar::capture_diff_slices(Algorithm::Myers, old, new) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                for i in 0..len {
                    at[prefix + old_index + i] = Some((prefix + new_index + i) as u32);
                }
            }
        }
    }
    Matches::Some(at)
}

#[cfg(test)]
mod tests {
    use super::align;
    use crate::marks::Label;

    fn places(template: &[Label], step: &[Label]) -> Vec<Option<usize>> {
        align(template, step).places().collect()
    }

    #[test]
    fn an_extra_and_a_missing_mark_leave_the_others_in_place() {
        assert_eq!(places(&[1, 2, 3, 4], &[1, 9, 2, 4]), [Some(0), Some(2), None, Some(3)]);
        assert_eq!(places(&[1, 2], &[1, 2]), [Some(0), Some(1)]);
        assert_eq!(places(&[], &[1]), []);
    }
}
