//! Distance of a call from the fitted range.

use super::learn::table::MISSING;

/// Distances up to this are noise of measurement, not extrapolation.
pub const TOLERATED: f64 = 0.02;
/// Distance at which half of a learnt correction is applied.
const HALF: f64 = 0.5;
/// Growth of the half-width with the distance: it doubles at one range's width outside.
const GROWTH: f64 = 1.0;

/// The setting is not a size: for a setting outside of the fit, trees take the nearest.
const SETTING: &str = "setting";

/// Greatest excess over a feature's range, in units of the range, or of 1 if the range is narrower: most
/// features are logarithms.
#[must_use]
pub fn distance(row: &[f32], ranges: &[(String, f32, f32)]) -> f64 {
    excess(row.iter().zip(ranges).map(|(&value, (name, low, high))| (name.as_str(), value, *low, *high)))
}

/// The same over names of features, values, and their least and greatest.
pub fn excess<'a>(features: impl Iterator<Item = (&'a str, f32, f32, f32)>) -> f64 {
    let counts = |(name, value, ..): &(&str, f32, f32, f32)| *value != MISSING && *name != SETTING;
    let excess = features.filter(counts).map(|(_, value, low, high)| {
        let outside = (low - value).max(value - high).max(0.0);
        f64::from(outside / (high - low).max(1.0))
    });
    excess.fold(0.0, f64::max)
}

/// Share of a learnt correction that is applied at a distance.
#[must_use]
pub fn belief(distance: f64) -> f64 {
    let outside = (distance - TOLERATED).max(0.0) / HALF;
    1.0 / (1.0 + outside * outside)
}

/// Factor of the half-width at a distance, and addition to it.
#[must_use]
pub fn widening(distance: f64) -> (f64, f64) {
    let outside = (distance - TOLERATED).max(0.0);
    (1.0 + GROWTH * outside.min(4.0), 0.25 * outside.min(4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farther_out_the_less_is_believed() {
        let ranges = [("a".to_owned(), 0.0, 10.0), ("b".to_owned(), 1.0, 1.0)];
        assert_eq!(distance(&[5.0, 1.0], &ranges), 0.0);
        assert_eq!(distance(&[12.0, 1.0], &ranges), f64::from(0.2f32));
        assert_eq!(distance(&[5.0, 0.5], &ranges), 0.5);
        assert_eq!(distance(&[5.0, MISSING], &ranges), 0.0);
        assert_eq!(belief(0.01), 1.0);
        assert!(belief(0.2) > belief(2.0));
        assert!(belief(2.0) < 0.1);
        assert!(widening(1.0).0 > widening(0.1).0);
        assert_eq!(widening(0.0), (1.0, 0.0));
    }
}
