//! Rules by which categories become indices.

use serde::{Deserialize, Serialize};

/// Rule by which the categories of the source become indices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "lowercase", deny_unknown_fields)]
pub enum IdRule {
    /// Categories that occur at least `threshold` times have the indices 1, 2, ... from the most to the least
    /// frequent; index 0 is for all others and for missing values.
    Frequency {
        /// Least number of occurrences, at least 1.
        threshold: u32,
    },
    /// Index `1 + hash mod (buckets - 1)`; 0 for missing values.
    Hash {
        /// Number of indices, at least 2.
        buckets: u32,
    },
    /// Indices of the source itself.
    Stored,
    /// Indices of planted data.
    Planted {
        /// Seed of the rows and of the model.
        seed: u64,
        /// Zipf exponent of the indices; 0 is the uniform distribution.
        zipf: f64,
    },
}
