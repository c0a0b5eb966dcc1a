//! Tests of the crate, in one program: the crates that it uses are linked once.

mod backward;
mod common;
mod convolution;
mod elementwise;
mod embedding;
mod embedding_bounds;
mod embedding_golden;
mod gemm;
mod gemm_linear;
mod interaction;
mod loss;
mod optimizer;
mod rearrange;
