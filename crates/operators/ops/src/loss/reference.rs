//! The definitions of losses, in double precision.

use super::Loss;

/// The loss of one element.
#[must_use]
pub fn value(loss: Loss, prediction: f64, target: f64) -> f64 {
    match loss {
        Loss::Mse => (prediction - target).powi(2),
        Loss::BceWithLogits => {
            target * (-prediction).exp().ln_1p() + (1.0 - target) * prediction.exp().ln_1p()
        }
    }
}

/// The slope of that loss with respect to the prediction.
#[must_use]
pub fn slope(loss: Loss, prediction: f64, target: f64) -> f64 {
    match loss {
        Loss::Mse => 2.0 * (prediction - target),
        Loss::BceWithLogits => 1.0 / (1.0 + (-prediction).exp()) - target,
    }
}
