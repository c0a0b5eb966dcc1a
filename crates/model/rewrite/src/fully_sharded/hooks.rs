//! What FSDP2 does in Python, in times of a small op with autograd: so much each time, and so much for each parameter.
//!
//! Medians of the time that functions take beside the ops inside them, of steps of a perceptron (2 parameters a block) and of a decoder
//! (12) with PyTorch 2.11 on a host of an H200 (`benches/worlds.py`), divided by what such an op takes on that host.

/// Host time of a function: each time, and for each parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hook(f64, f64);

impl Hook {
    pub fn of(self, parameters: usize) -> f64 {
        self.0 + self.1 * parameters as f64
    }
}

pub(super) const ROOT_PRE_FORWARD: Hook = Hook(22.0, 0.0);
pub(super) const INPUTS: Hook = Hook(7.5, 0.0);
pub(super) const PRE_FORWARD: Hook = Hook(33.5, 1.0);
pub(super) const POST_FORWARD: Hook = Hook(6.7, 1.0);
pub(super) const GATHER: Hook = Hook(41.4, 0.8);
pub(super) const COPY_IN: Hook = Hook(9.0, 0.13);
pub(super) const COPY_OUT: Hook = Hook(20.1, 1.94);
pub(super) const SPLIT: Hook = Hook(4.0, 0.0);
pub(super) const REGISTER: Hook = Hook(5.0, 0.0);
pub(super) const PRE_BACKWARD: Hook = Hook(19.5, 0.0);
pub(super) const PREFETCH: Hook = Hook(6.0, 0.0);
pub(super) const REGISTERED: Hook = Hook(10.5, 0.0);
pub(super) const ACCUMULATE: Hook = Hook(4.2, 0.1);
pub(super) const RESHARD: Hook = Hook(6.2, 0.54);
pub(super) const REDUCE: Hook = Hook(71.0, 0.4);
pub(super) const CHUNK: Hook = Hook(4.0, 0.0);
pub(super) const ROOT_POST_BACKWARD: Hook = Hook(36.0, 0.0);
/// An op of the optimizer over lists of `DTensor`, what it gives anew, and the optimizer around such ops.
pub(super) const LIST: Hook = Hook(15.6, 0.58);
pub(super) const NEW_LIST: Hook = Hook(28.0, 2.9);
pub(super) const OPTIMIZER: Hook = Hook(10.0, 0.65);
