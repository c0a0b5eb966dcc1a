//! Measured limits of this machine, to compare operators with.
//!
//! Each limit is the best of several methods and repetitions, with the threads of the [`Cpu`](crate::Cpu) on which it
//! is measured.

mod fma;
mod memory;
mod read;

pub use fma::fma_peak;
pub use memory::available_memory;
pub use read::{random_rows, sequential_read};

/// The best rate of several methods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Bytes, or floating-point operations, per second.
    pub per_second: f64,
    /// The method that reached it.
    pub way: Way,
}

/// Method that reached a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Plain loads.
    Loads,
    /// Loads of data that was prefetched this many rows earlier.
    Ahead(usize),
    /// Independent chains of fused multiply-adds.
    Chains,
}
