//! Temporary memory of an op, such as the workspace of a library: only its use is known.

use steptime_aten::Dtype;
use steptime_step::{Call, OpId, TensorId};

use super::types::Types;

impl Types<'_> {
    /// Whether a tensor was not recorded, no op makes it, and a single outermost op takes it.
    pub(super) fn is_temporary(&self, tensor: TensorId) -> bool {
        let row = self.step.tensors.get(tensor);
        if !row.is_some_and(|row| row.recorded.is_none() && row.storage.is_none()) || self.is_made(tensor) {
            return false;
        }
        let mut takers = self.uses.consumers(tensor).iter().map(|&op| self.step.outermost(op));
        let first = takers.next();
        takers.all(|taker| Some(taker) == first)
    }

    /// Gives temporary memory of an op in 16 bits, and of those inside it, 16 bits too, where its type is not yet known.
    pub(super) fn settle(&mut self, op: OpId, call: &Call, of: Dtype) {
        if of != self.narrow {
            return;
        }
        let step = self.step;
        let inside = step.subtree(op).into_iter().skip(1).filter_map(|op| step.ops[op].call.as_deref());
        let all: Vec<TensorId> =
            inside.chain([call]).flat_map(|call| call.takes().chain(call.gives())).collect();
        for tensor in all {
            if self.is_temporary(tensor) && self.dtype(tensor).is_some() && !self.is_known(tensor) {
                self.set(tensor, of);
            }
        }
    }
}
