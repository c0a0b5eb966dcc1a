//! Tests of the runtime.

mod common;
mod determinism;
mod losses;
mod models;
mod rules;
