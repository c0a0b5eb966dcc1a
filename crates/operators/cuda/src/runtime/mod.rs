//! The driver as this crate uses it: devices, memory, streams, compiled kernels, graphs.

mod args;
mod buffer;
mod compile;
mod cubin_cache;
mod device;
mod error;
mod graph;
mod in_turn;
mod kernel;
mod pinned;
mod random;
mod slice;
mod stream;
mod timing;

pub use args::Args;
pub use buffer::Buffer;
pub use compile::{Build, Origin, Source, nvrtc_version};
pub use cubin_cache::CubinCache;
pub use device::{Capability, Device};
pub use error::Error;
pub use graph::Graph;
pub(crate) use in_turn::InTurn;
pub use kernel::{Grid, Kernel, Module};
pub use pinned::Pinned;
pub use random::randomize;
pub use slice::{Slice, SliceMut};
pub use stream::{Event, Stream};
pub use timing::{median_time, replay_time};
