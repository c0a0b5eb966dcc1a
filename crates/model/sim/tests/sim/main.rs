//! Tests of the crate, in one program: the crates that it uses are linked once.

mod beside;
mod hand_computed;
mod nodes;
mod overlap;
mod prefetch;
mod properties;
mod robust;
mod sharing;
mod support;
mod world;
