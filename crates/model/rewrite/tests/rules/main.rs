//! Tests of the crate, in one program: the crates that it uses are linked once.

mod accumulate;
mod bags;
mod bf16;
mod checkpoint;
mod common;
mod concat_in_place;
mod data_parallel;
mod dense_bags;
mod fully_sharded;
mod fuse;
mod fuse_casts;
mod no_sync;
mod operators;
mod operators_recorded;
mod optimizer;
mod parallel_graph;
mod passes;
mod prefetch;
mod recorded;
mod remove;
mod reorder;
mod shard_tables;
mod sharded_recorded;
mod streams;
