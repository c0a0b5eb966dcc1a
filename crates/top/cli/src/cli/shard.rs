//! Parts of the work, for several machines.

use serde::Deserializer;
pub use steptime_fleet::Shard;

use crate::cli::checked;

/// Reads `2/4`.
pub fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((part, of)) if 1 <= part && part <= of => Ok(Shard { part, of }),
        _ => Err("a shard is two whole numbers, as 2/4: the second of four".to_owned()),
    }
}

/// Reads a part that may be left out.
pub fn optional_shard<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Shard>, D::Error> {
    checked::optional(deserializer, shard)
}
