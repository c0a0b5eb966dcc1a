//! Tests of the crate, in one program: the crates that it uses are linked once.

mod backward;
mod cache;
mod cast;
mod dense;
mod elementwise;
mod embedding;
mod gemm;
mod gemm_types;
mod index;
mod interaction;
mod linear;
mod loss;
mod nccl;
mod peer;
mod pointwise;
mod product;
mod rearrange;
mod reduce;
mod softmax;
mod streams;
mod support;
