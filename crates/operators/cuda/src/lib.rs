//! Operators of a recommender's training step on NVIDIA GPUs, with the semantics of `steptime-ops`.
//!
//! Kernels are CUDA C++, in files next to the Rust code that launches them. NVRTC compiles them at run time for the
//! exact sizes, types and options, and the results are cached on disk. This crate builds without CUDA. Without a
//! driver, [`Device::open`] returns an error: it does not panic.
//!
//! Results are bit-identical in each run: no sum depends on the order in which threads run.
//!
//! Tensors between operators have 32-bit floats, or bf16 where an operator has a type parameter [`Float`]: it adds and
//! multiplies in 32 bits, and rounds what it stores. Gradients of parameters have 32 bits.

#![deny(missing_docs)]

mod block_sums;
pub mod cache;
pub mod cast;
pub mod embedding;
mod float;
mod frame;
pub mod gemm;
pub mod geometry;
pub mod index;
pub mod interaction;
pub mod linear;
pub mod loss;
pub mod nccl;
pub mod optimizer;
pub mod peer;
pub mod pointwise;
pub mod product;
pub mod rearrange;
pub mod reduce;
mod runtime;
pub mod softmax;

pub use float::Float;
#[cfg(test)]
use runtime::TestCompiler;
pub use runtime::{
    Args, Buffer, Build, Capability, CubinCache, Device, Error, Event, Graph, Grid, Kernel, Module, Origin,
    Parts, Pinned, Readback, Slice, SliceMut, Source, Staging, Stream, median_time, nvrtc_version, randomize,
    replay_time,
};
