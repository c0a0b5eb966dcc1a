//! The format on disk.

mod dataset;
mod encode;
mod features;
mod gather;
mod id_rule;
mod split;
mod types;
mod writer;

pub use dataset::Dataset;
pub use encode::{Block, Column, Rows};
pub use features::{Categorical, Dense, FEATURES, Features, Label, SplitName, Splits, VERSION};
pub use id_rule::IdRule;
pub use split::Split;
pub use types::{DenseType, Hotness, IndexType, Transform};
pub use writer::Writer;
pub(crate) use writer::is_free;
