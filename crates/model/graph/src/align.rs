//! Matches the marks of one step with those of the template step.

use similar::{Algorithm, DiffOp};

/// Maximum number of pairs of differing marks for a full match; above it only the common beginning and end are matched.
const LARGEST_TABLE: usize = 400_000_000;

/// Returns the position in `step` of each mark of `template`, or `None` if the step does not have it.
///
/// Equal sequences, the ordinary case, cost one comparison; others are matched by their longest common
/// subsequence, very long ones by their common beginning and end.
pub(crate) fn align(template: &[u64], step: &[u64]) -> Vec<Option<u32>> {
    if template == step {
        return (0..template.len() as u32).map(Some).collect();
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
    at
}

#[cfg(test)]
mod tests {
    use super::align;

    #[test]
    fn an_extra_and_a_missing_mark_leave_the_others_in_place() {
        assert_eq!(align(&[1, 2, 3, 4], &[1, 9, 2, 4]), [Some(0), Some(2), None, Some(3)]);
        assert_eq!(align(&[1, 2], &[1, 2]), [Some(0), Some(1)]);
        assert_eq!(align(&[], &[1]), []);
    }
}
