//! Data kept with the row of a lookup.

use steptime_ops::embedding::Pooling;

use super::Tables;

/// Data kept with the row of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// The bag: for sums and means without per-sample weights.
    Bag,
    /// The position, counted from the table's first lookup: for tables that are not pooled.
    Position,
    /// The position, and additionally the bag of each position.
    PositionAndBag,
}

impl Payload {
    /// The payload that the backward pass of these tables needs.
    #[must_use]
    pub fn needed(tables: &Tables<'_>, weighted: bool) -> Payload {
        let pooling = |wanted| (0..tables.len()).filter(|&at| tables.pooling(at) == wanted).count();
        let apart = pooling(Pooling::None);
        if apart == tables.len() {
            Payload::Position
        } else if weighted || apart + pooling(Pooling::Max) > 0 {
            Payload::PositionAndBag
        } else {
            Payload::Bag
        }
    }
}
