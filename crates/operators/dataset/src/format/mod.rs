//! The description of datasets.

mod features;
mod id_rule;
mod types;

pub use features::{Categorical, Dense, FEATURES, Features, Label, SplitName, Splits, VERSION};
pub use id_rule::IdRule;
pub use types::{DenseType, Hotness, IndexType, Transform};
