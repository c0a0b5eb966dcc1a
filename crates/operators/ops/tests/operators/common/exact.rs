//! Comparison with results in double precision.

pub fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Asserts that `ours` is within the rounding error of sums of `terms` numbers of at most 1.
pub fn close(what: &str, ours: &[f32], exact: &[f64], terms: usize) {
    assert_eq!(ours.len(), exact.len());
    let room = 1e-6 * (terms as f64).max(4.0);
    for (at, (&ours, exact)) in ours.iter().zip(exact).enumerate() {
        assert!((f64::from(ours) - exact).abs() <= room, "{what} {at}: {ours} is not {exact}");
    }
}
