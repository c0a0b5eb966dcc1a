//! Device code that joins the values of the threads of a block, in a fixed order.

/// Common beginning of the device code of all kernels that sum over a block: see `reduce.cuh`.
pub(crate) const REDUCE: &str = include_str!("reduce.cuh");
