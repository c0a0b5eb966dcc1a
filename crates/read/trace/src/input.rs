//! What a path holds: a file, a recording, or one of them for each rank.

mod archive;
mod layout;
mod meta;
mod pairing;
mod rank;
mod recording;

pub use meta::{Meta, Numbers};
pub use recording::{Input, Options, Recording, Want, open, open_with};
