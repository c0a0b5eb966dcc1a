//! Tests of the crate, in one program: the crates that it uses are linked once.

mod execution;
mod kineto;
mod open;
mod published;
mod repairs;
mod robust;
