//! Tests of the parts around a training run.

mod checkpoints;
mod damaged;
mod faults;
mod killed;
mod measures;
mod sample;
mod schedules;
