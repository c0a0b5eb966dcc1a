//! Operators of a recommender's training step on NVIDIA GPUs, with the semantics of `steptime-ops`.
//!
//! Kernels are CUDA C++ beside the Rust that launches them. They are compiled at run time for the exact sizes, types
//! and options by NVRTC, and kept on disk. Nothing of CUDA is needed to build this crate, and where there is no
//! driver [`Device::open`] says so: it does not panic.
//!
//! Results are the same bits in each run: no sum depends on the order in which threads happen to run.

pub mod cache;
pub mod elementwise;
pub mod embedding;
pub mod gemm;
pub mod geometry;
pub mod interaction;
pub mod product;
pub mod rearrange;
mod runtime;

pub use runtime::{
    Args, Buffer, Build, Capability, CubinCache, Device, Error, Event, Graph, Grid, Kernel, Module, Origin,
    Pinned, Slice, SliceMut, Source, Stream, median_time, nvrtc_version, randomize, replay_time,
};
