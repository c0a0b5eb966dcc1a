//! Nodes of a CUDA graph, ordered by the bytes that their ops use.
//!
//! Each node waits for the nodes before it that use the same bytes, one of them writing. Nodes that do not wait for one another run at once, as on
//! streams of their own.

mod bytes;
mod dependencies;
mod order;

use std::collections::BTreeMap;

pub use self::bytes::UsedBytes;
pub(crate) use self::order::order;
use crate::ids::TensorId;

/// Order of the nodes of a captured graph by their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeOrder {
    /// Bytes of tensors in memory that a planner shares among them. Tensors without an entry have memory of their own.
    pub places: BTreeMap<TensorId, UsedBytes>,
}
