//! Tests of the crate, in one program: the crates that it uses are linked once.

mod sweeps;
mod tables;
