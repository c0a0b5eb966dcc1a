//! Measures of an evaluation of a binary classifier: area under the ROC curve, log loss, calibration, normalised
//! entropy.
//!
//! Every measure is accumulated batch by batch, and has the same bits for every split of the samples into batches, every
//! order of them and every number of threads: the area is counted in integers, and sums are exact until their one
//! rounding at the end.

mod auc;
mod batch;
mod calibration;
mod error;
mod evaluation;
mod exact_sum;
mod log_loss;
mod probability;
mod radix;

pub use auc::{Auc, Undefined};
pub use batch::{Batch, Scores};
pub use calibration::{Calibration, Reliability};
pub use error::MeasureError;
pub use evaluation::{Evaluation, Measures};
pub use exact_sum::ExactSum;
pub use log_loss::LogLoss;
