//! Checkpoints: folders of safetensors shards with a readable description.
//!
//! | file of `step-000000001000/` | content |
//! |---|---|
//! | `checkpoint.toml` | step, epoch, seed, position in the data, schedule, the model's text, shards and tensors; its last line is the hash of those above |
//! | `shard-00000.safetensors` ... | weights and optimizer states by name; a table too large for one shard is cut by rows, each piece named `NAME[FIRST..LAST]` |
//!
//! A checkpoint is written into a folder `step-....partial` beside its place, flushed to the disk and renamed. A process
//! that is killed at any moment leaves the checkpoints before it as they were. [`Store`] writes, [`Checkpoint`] reads.

mod digest;
mod disk;
mod error;
mod folder;
mod header;
mod layout;
mod manifest;
mod number;
mod open;
mod pread;
mod read;
mod source;
mod store;
mod write;

pub use digest::{Digest, Hasher};
pub use disk::{Disk, DurableFile, LocalDisk};
pub use error::CheckpointError;
pub use folder::{list, newest};
pub use manifest::{Model, Piece, Shard, State, Tensor};
pub use number::Number;
pub use read::Checkpoint;
pub use source::{Entry, Source};
pub use store::{Options, Store, Written};
