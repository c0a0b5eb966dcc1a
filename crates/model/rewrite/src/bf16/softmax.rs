//! Softmax of float16: it outputs 32 bits without a cast, and its gradient outputs float16 again.

use steptime_aten::{Arg, Dtype};
use steptime_step::{Call, TensorId};

use super::types::Types;

const FORWARD: [&str; 2] = ["aten::_softmax", "aten::_log_softmax"];
const BACKWARD: [&str; 2] = ["aten::_softmax_backward_data", "aten::_log_softmax_backward_data"];
/// Position of `half_to_float` in `_softmax`.
const TO_SINGLE: usize = 2;
/// Positions of the result and of the input type of the softmax in its gradient.
const RESULT: usize = 1;
const INPUT_TYPE: usize = 3;

impl Types<'_> {
    /// Changes a call of a softmax of float16, or of its gradient; returns the type of its output. `None` for other calls.
    pub(super) fn half_softmax(&mut self, name: &str, call: &mut Call) -> Option<Dtype> {
        if self.narrow != Dtype::F16 {
            return None;
        }
        let tensor = |at: usize| -> Option<TensorId> { call.inputs.get(at)?.tensors().first().copied() };
        if FORWARD.contains(&name) {
            tensor(0).filter(|&input| self.dtype(input) == Some(Dtype::F16))?;
            self.of_half.extend(call.gives());
            *call.inputs.get_mut(TO_SINGLE)? = Arg::Bool(true);
            return Some(Dtype::F32);
        }
        let of_half =
            BACKWARD.contains(&name) && tensor(RESULT).is_some_and(|result| self.of_half.contains(&result));
        if !of_half {
            return None;
        }
        *call.inputs.get_mut(INPUT_TYPE)? = Arg::Int(Dtype::F16.code());
        Some(Dtype::F16)
    }
}
