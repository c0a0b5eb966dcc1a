//! Tests of the runtime.

mod accumulation;
mod common;
mod determinism;
mod gpu;
mod gpu_ranks;
mod gradients;
mod losses;
mod measure;
mod memory;
mod models;
mod ranks;
mod refused;
mod resume;
mod row_caches;
mod rules;
