//! Planted rows: synthetic data whose true probabilities are known.

mod best;
mod cardinalities;
mod model;
mod planted;
mod write;

pub use best::Best;
pub use cardinalities::KAGGLE_CARDINALITIES;
pub use planted::{Planted, PlantedOptions, PlantedRow};
