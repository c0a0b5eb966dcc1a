//! Tests of the crate, in one program: the crates that it uses are linked once.

mod backward;
mod cache;
mod dense;
mod elementwise;
mod embedding;
mod gemm;
mod interaction;
mod loss;
mod product;
mod rearrange;
mod softmax;
mod streams;
mod support;
