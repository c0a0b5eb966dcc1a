//! Differences of results from their references.

/// The largest difference of pairs of a result and its reference, relative to references above 1.
pub fn largest_error(pairs: impl Iterator<Item = (f32, f64)>) -> f64 {
    largest(pairs.map(|(found, expected)| (f64::from(found), expected, 1.0)))
}

/// The largest difference of triples of a result, its reference, and the scale below which references count as large as
/// that scale. The difference of NaN is infinite.
pub fn largest(triples: impl Iterator<Item = (f64, f64, f64)>) -> f64 {
    triples.fold(0.0, |largest, (found, expected, scale)| {
        let error = (found - expected).abs() / expected.abs().max(scale);
        if error <= largest {
            largest
        } else if error.is_nan() {
            f64::INFINITY
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_what_is_large() {
        assert_eq!(largest_error([(1.5, 1.0), (200.0, 100.0), (0.25, 0.0)].into_iter()), 1.0);
        assert_eq!(largest([(3.0, 1.0, 4.0)].into_iter()), 0.5);
        assert_eq!(largest_error(std::iter::empty()), 0.0);
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        for (found, expected) in [(f32::NAN, 1.0), (1.0, f64::NAN), (f32::INFINITY, f64::INFINITY)] {
            assert_eq!(largest_error([(0.0, 0.0), (found, expected)].into_iter()), f64::INFINITY);
        }
    }
}
