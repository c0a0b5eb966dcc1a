//! Inputs by path: a file, a recording, or one of them per rank.

mod archive;
mod files;
mod layout;
mod meta;
mod open;
mod pairing;
mod rank;
mod recording;

pub use files::{KinetoFile, kineto_files};
pub use meta::{ConstantTensor, KeptResult, Meta, ModuleCall, Numbers, RecordedLookup};
pub use open::{Options, Want, open, open_with};
pub use recording::{Input, Recording};
