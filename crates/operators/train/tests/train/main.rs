//! Tests of the parts around a training run.

mod measures;
