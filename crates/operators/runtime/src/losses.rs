//! Losses of the rounds of a step.

/// Mean of losses; NaN of none.
pub(crate) fn mean(losses: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = losses.len();
    (losses.map(f64::from).sum::<f64>() / count as f64) as f32
}
