//! Doubt: ops with unknown arguments, whose kernels keep their measured time when a change makes other kernels longer or shorter.

use steptime_trace::Nanos;

use super::Doubt;
use crate::uncertainty::uncertainty;

/// The doubt of a changed step with device time of ops with unknown arguments: these kernels may have changed by the same factor as
/// the others, whose time went from `before` to `after`.
pub(crate) fn doubt(unknown: Nanos, [before, after]: [Nanos; 2], step: Nanos) -> Option<Doubt> {
    let times = after.0 as f64 / before.0.max(1) as f64;
    let amiss = unknown.0 as f64 * (times - 1.0) / step.0.max(1) as f64;
    let share = 100.0 * unknown.0 as f64 / (unknown.0 + before.0).max(1) as f64;
    (amiss.abs() >= uncertainty().doubts.arguments.threshold).then(|| Doubt {
        kind: "arguments",
        text: format!(
            "the arguments of ops are not known for {share:.0} % of device time, which is assumed not to change (record the step with its \
             whole execution trace)"
        ),
        below: -(1.0 + amiss.clamp(-0.5, 0.0)).ln(),
        above: (1.0 + amiss.max(0.0)).ln(),
        no_estimate: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn what_is_not_known_may_have_grown_too() {
        let doubt = doubt(Nanos(2 * MS), [Nanos(2 * MS), Nanos(8 * MS)], Nanos(10 * MS)).unwrap();
        assert!((doubt.above - 1.6f64.ln()).abs() < 1e-12 && doubt.below == 0.0);
        assert!(doubt.text.contains("50 % of device time"), "{}", doubt.text);
    }

    #[test]
    fn nothing_is_said_where_nothing_changed() {
        assert_eq!(doubt(Nanos(2 * MS), [Nanos(2 * MS), Nanos(2 * MS)], Nanos(4 * MS)), None);
    }
}
