//! Exchanges between GPUs, by NVIDIA's NCCL, which is loaded at first use.
//!
//! All ranks of a job call the same exchanges in the same order, each in a stream of its own GPU. An exchange is work of its stream like a kernel:
//! it begins when all ranks have reached it, and can be captured in a graph.

mod communicator;
mod library;

pub use communicator::{Communicator, Reduction, UniqueId};
pub use library::{LIBRARY_VARIABLE, version};
