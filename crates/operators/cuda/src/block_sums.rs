//! Device code that joins the values of the threads of a block, in a fixed order.

/// Common beginning of the device code of all kernels that sum over a block: see `block_sums.cuh`.
pub(crate) const BLOCK_SUMS: &str = include_str!("block_sums.cuh");
