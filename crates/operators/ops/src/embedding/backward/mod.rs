//! Gradients of tables, fused with the optimizer.
//!
//! [`RowOptimizer::step`] steps each row that was looked up. The gradient of a row is the sum over its lookups of the
//! gradient of their bags (times the lookup's weight, over L for a mean; for a maximum, that of the columns the lookup
//! won). It is summed in registers and used at once, so that the gradients of the lookups, `[N, D]`, are never stored.
//! Lookups are [grouped](super::group) by row first. Each row has one owner, so that duplicates are exact and the
//! result is bit-identical at any number of threads and with any instruction set. [`SparseGradient`] holds the
//! gradients alone, for other optimizers.
//!
//! Bytes that must move, with U distinct rows of D columns: `2 U D` weights, twice the state, `B D` gradients.

mod error;
mod gradient;
mod reference;
mod round;
mod rows;
mod rule;
mod sparse;
mod state;
mod step;
mod sum;
mod update;
mod winners;

pub use error::BackwardError;
pub use gradient::Gradient;
pub use reference::gradients_reference;
pub use rule::{Decay, Rounding, RowRule};
pub use sparse::{SparseGradient, sparse_gradients};
pub use state::State;
pub use step::RowOptimizer;
pub use winners::{NO_WINNER, winners};
