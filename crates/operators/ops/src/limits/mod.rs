//! What this machine can do at most, measured: the yardstick of the operators.
//!
//! Each limit is the best of several ways and repetitions, with the threads of the [`Cpu`](crate::Cpu) it is measured on.

mod fma;
mod read;

pub use fma::fma_peak;
pub use read::{random_rows, sequential_read};

/// The best rate of several ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Bytes, or floating-point operations, in a second.
    pub per_second: f64,
    /// The way that reached it.
    pub way: Way,
}

/// How a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Plain loads.
    Loads,
    /// Loads of what was fetched this many rows earlier.
    Ahead(usize),
    /// Independent chains of fused multiply-adds.
    Chains,
}
