//! Host time of FSDP2 in Python, in units of a small op with autograd: a constant per call, and a term per parameter.
//!
//! Measured on recorded steps of a perceptron (2 parameters per block) and of a decoder (12), with PyTorch 2.11 on a host of an H200
//! (`benches/worlds.py`). Each constant is the time of its function without the ops inside it and without the profiler's cost, minus the time that
//! host profiles give the op that represents it. A third model, ResNet-50, was held out.

/// Host time of a function: per call, and per parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hook(f64, f64);

impl Hook {
    pub fn cost(self, parameters: usize) -> f64 {
        self.0 + self.1 * parameters as f64
    }
}

pub(super) const ROOT_PRE_FORWARD: Hook = Hook(14.0, 0.0);
pub(super) const INPUTS: Hook = Hook(5.2, 0.0);
pub(super) const PRE_FORWARD: Hook = Hook(25.5, 0.0);
pub(super) const POST_FORWARD: Hook = Hook(6.3, 0.44);
pub(super) const GATHER: Hook = Hook(32.0, 0.0);
pub(super) const COPY_IN: Hook = Hook(5.7, 0.0);
pub(super) const COPY_OUT: Hook = Hook(19.3, 0.26);
pub(super) const SPLIT: Hook = Hook(2.4, 0.0);
pub(super) const REGISTER: Hook = Hook(3.2, 0.0);
pub(super) const PRE_BACKWARD: Hook = Hook(12.0, 0.0);
pub(super) const PREFETCH: Hook = Hook(4.0, 0.0);
pub(super) const REGISTERED: Hook = Hook(4.3, 0.0);
pub(super) const ACCUMULATE: Hook = Hook(2.9, 0.0);
pub(super) const RESHARD: Hook = Hook(5.5, 0.23);
pub(super) const REDUCE: Hook = Hook(53.0, 0.0);
pub(super) const CHUNK: Hook = Hook(2.1, 0.0);
pub(super) const ROOT_POST_BACKWARD: Hook = Hook(19.0, 0.0);
/// An op of the optimizer over lists of `DTensor`, for all tensors in them; one that returns a new list; the optimizer around such ops.
pub(super) const LIST: Hook = Hook(21.0, 0.23);
pub(super) const NEW_LIST: Hook = Hook(22.0, 0.93);
pub(super) const OPTIMIZER: Hook = Hook(24.0, 0.55);
