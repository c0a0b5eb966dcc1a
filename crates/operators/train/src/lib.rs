//! The parts of a training run around its steps: measures of an evaluation, checkpoints, schedules of the learning
//! rate, numbers of the progress line, export to ONNX.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod checkpoint;
pub mod metrics;
pub mod onnx;
pub mod progress;
pub mod schedule;
