//! One measured op.

use steptime_aten::from_text::{TextError, Texts, op_call};
use steptime_aten::{KernelCall, OpCall, Settings};
use steptime_cost::device::Context;

/// One leaf op of a case, in one state of the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Number of the case within its generator.
    pub case: i32,
    /// Generator, such as `gemm`: not the kernel family.
    pub family: String,
    /// Index among the ops of its case that launch work.
    pub leaf: i32,
    /// Op, such as `aten::mm`.
    pub op: String,
    /// Shapes of its inputs, as JSON.
    pub dims: String,
    /// Strides of its inputs, as JSON.
    pub strides: String,
    /// Types of its inputs, as JSON.
    pub types: String,
    /// Values of the inputs that are not tensors, as JSON.
    pub concrete: String,
    /// Devices of the inputs; empty if all are on the GPU.
    pub devices: String,
    /// Whether matrix products may use TF32.
    pub tf32: bool,
    /// Distribution of indices: empty, or in the text form of [`Indices`](steptime_cost::device::Indices).
    pub indices: String,
    /// State of the cache before the case.
    pub state: State,
    /// Duration, µs: the median over repetitions of the sum over its activities.
    pub us: f32,
    /// Shortest repetition, µs.
    pub us_min: f32,
    /// Longest repetition, µs.
    pub us_max: f32,
    /// Names of its kernels, as JSON.
    pub kernels: String,
}

/// The state of the second-level cache before a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Flushed.
    Cold,
    /// The case itself ran just before.
    Warm,
    /// The case itself ran, then this number of bytes of other memory was written.
    After(u64),
}

impl State {
    /// Reads `cold`, `warm`, `after:1048576`.
    #[must_use]
    pub fn parse(text: &str) -> Option<State> {
        match text {
            "cold" => Some(State::Cold),
            "warm" => Some(State::Warm),
            _ => text.strip_prefix("after:")?.parse().ok().map(State::After),
        }
    }
}

impl Row {
    /// Returns the op with its arguments.
    ///
    /// # Errors
    ///
    /// Arguments that cannot be read.
    pub fn op_call(&self) -> Result<OpCall, TextError> {
        let Row { dims, strides, types, concrete, devices, .. } = self;
        let call = op_call(&self.op, &Texts { dims, strides, types, concrete, devices })?;
        Ok(OpCall { settings: Settings { matmul_tf32: self.tf32, ..Settings::default() }, ..call })
    }

    /// Returns the names of its kernels; none if they cannot be read.
    #[must_use]
    pub fn kernel_names(&self) -> Vec<String> {
        serde_json::from_str(&self.kernels).unwrap_or_default()
    }

    /// Returns the context in which a call was measured.
    #[must_use]
    pub fn context(&self, call: &KernelCall) -> Context {
        let context = match self.state {
            State::Cold => Context::cold(call),
            State::Warm => Context::warm(call),
            State::After(bytes) => Context::after(call, bytes),
        };
        context.with_indices(self.indices.parse().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_the_cache() {
        assert_eq!(State::parse("cold"), Some(State::Cold));
        assert_eq!(State::parse("warm"), Some(State::Warm));
        assert_eq!(State::parse("after:4096"), Some(State::After(4096)));
        assert_eq!([State::parse(""), State::parse("after:-1"), State::parse("after:")], [None; 3]);
    }
}
