//! Exchanges between ranks, which have no implementation yet.

use crate::row::{Row, missing};

/// The remedy.
const ONE: &str = "exchanges between ranks have no implementation: train the model on one device";

pub(super) const ROWS: &[Row] = &[
    missing("c10d::allreduce_", ONE),
    missing("c10d::alltoall_base_", ONE),
    missing("c10d::broadcast_", ONE),
    missing("c10d::_allgather_base_", ONE),
    missing("c10d::_reduce_scatter_base_", ONE),
];
