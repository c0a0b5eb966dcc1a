//! Planted rows.

mod cardinalities;

pub use cardinalities::KAGGLE_CARDINALITIES;
