//! Tests of the crate, in one program: the crates that it uses are linked once.

mod batch;
mod bf16;
mod changed_job;
mod derived;
mod export;
mod gpu_order;
mod memory;
mod modules;
mod questions;
mod rule_pairs;
mod set_size;
mod spread;
mod stragglers;
mod what_if;
