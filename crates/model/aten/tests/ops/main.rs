//! Tests of the crate, in one program: the crates that it uses are linked once.

mod derive;
mod expansions;
mod loops;
mod recordings;
mod retarget;
