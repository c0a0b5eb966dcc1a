//! Tests of the parts around a training run.

mod checkpoints;
mod damaged;
mod faults;
mod killed;
mod measures;
mod onnx;
mod python;
mod sample;
mod schedules;
mod shards_in_python;
