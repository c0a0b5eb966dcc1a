//! Operators of a recommender's training step on the CPU: exact, deterministic, at the machine's limit.
//!
//! Every op has a plain reference in addition to its fast versions, and takes a [`Cpu`]: the instruction set to use and
//! the threads that share the work. Results do not depend on the number of threads.

#![deny(missing_docs)]

mod apart;
mod arch;
pub mod convolution;
mod cpu;
pub mod elementwise;
pub mod embedding;
pub mod gemm;
mod huge;
pub mod interaction;
mod isa;
pub mod limits;
pub mod loss;
pub mod optimizer;
mod pool;
pub mod rearrange;
mod round;
mod shared;
mod simd;
mod team;

pub use cpu::{Cpu, CpuError};
pub use isa::{Isa, UnknownIsa};
pub use pool::Pool;
