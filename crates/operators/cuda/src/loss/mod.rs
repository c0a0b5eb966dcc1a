//! Losses on a GPU: the mean over a batch, with the semantics of `steptime_ops::loss`, and the mean negative logarithm
//! of the probabilities of given classes, with its gradient, from their logarithms or from scores.
//!
//! Sums are kept in double precision. Large batches are cut into parts, one for each block, whose sums a second launch
//! adds in their order. The number of parts depends only on the size of the batch.

mod cross_entropy;
mod mean;
mod nll;
mod parts;

pub use cross_entropy::CrossEntropy;
pub use mean::MeanLoss;
pub use nll::NllLoss;
