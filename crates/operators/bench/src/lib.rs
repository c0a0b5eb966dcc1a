//! Benchmarks of the operators on the CPU and on a GPU: times, bytes that must move, and whether results are right.
//!
//! A run takes [`cpu::Settings`] or [`cuda::Settings`] and a list of benchmarks, and returns a serializable report.
//! A benchmark is one file with its sizes, its work, and the check of its result, and one line in [`cpu::ALL`] or
//! [`cuda::ALL`].

mod benchmark;
pub mod cpu;
pub mod cuda;
mod difference;
mod dlrm;
mod error;
mod init;
mod random;
mod sizes;

pub use benchmark::Benchmark;
pub use error::{Error, WrongResult};
pub use init::{Init, InitError};
pub use sizes::{SizeError, TypedSizes, size};
