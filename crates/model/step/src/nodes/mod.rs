//! Nodes of a CUDA graph, ordered by the bytes that their ops use.
//!
//! Each node waits for the nodes before it that use the same bytes, one of them writing. Nodes that do not wait for one another run at once, as on
//! streams of their own. Exchanges with other ranks run beside the graphs of a step, in an order of their own.

mod bytes;
mod dependencies;
mod order;

pub(crate) use self::order::{in_order, order};
