//! Export of a model's forward graph to ONNX.
//!
//! [`OnnxGraph`] is built value by value; shapes and types are checked where an op is added. Weights are streamed from
//! memory or from a checkpoint into a file of external data beside the model, so that they may exceed protobuf's 2 GiB.

mod constants;
mod data;
mod dim;
mod elementwise;
mod error;
mod export;
mod graph;
mod layers;
mod matrix;
pub mod proto;
mod rearrange;

pub use dim::Dim;
pub use error::OnnxError;
pub use graph::{OnnxGraph, Value};
