//! Wrappers of the driver: devices, memory, streams, compiled kernels, graphs.

mod args;
mod buffer;
mod capability;
mod compile;
mod cubin_cache;
mod device;
mod error;
mod graph;
mod graph_parts;
mod kernel;
mod pinned;
mod random;
mod readback;
mod slice;
mod staging;
mod stream;
mod stream_use;
#[cfg(test)]
mod test_compiler;
mod timing;

pub use args::Args;
pub use buffer::Buffer;
pub use capability::Capability;
pub use compile::{Build, Origin, Source, nvrtc_version};
pub use cubin_cache::CubinCache;
pub use device::Device;
pub use error::Error;
pub use graph::Graph;
pub use graph_parts::Parts;
pub use kernel::{Grid, Kernel, Module};
pub use pinned::Pinned;
pub use random::randomize;
pub use readback::Readback;
pub use slice::{Slice, SliceMut};
pub use staging::Staging;
pub use stream::{Event, Stream};
pub(crate) use stream_use::StreamUse;
#[cfg(test)]
pub(crate) use test_compiler::TestCompiler;
pub use timing::{median_time, replay_time};
