//! The ops that split the fused result into those of the bags, and join their gradients.

use steptime_aten::{Arg, Tensor};
use steptime_step::{Call, NewOp, Patch, StepIr, TensorId};

use super::bags::Kind;
use crate::new_ops::{function, ints, op};

/// The tensors around the fused bag.
pub(super) struct Parts<'p> {
    pub kind: &'p Kind,
    pub results: &'p [TensorId],
    pub fused: TensorId,
}

impl Parts<'_> {
    fn count(&self) -> i64 {
        self.results.len() as i64
    }

    fn stacked(&self, step: &StepIr, patch: &mut Patch) -> TensorId {
        let shape = [self.count(), self.kind.bags, self.kind.width];
        patch.tensor(step, Tensor::contiguous(&shape, self.kind.dtype))
    }

    /// `view` and `unbind`, whose outputs are the results of the bags.
    pub fn forward(&self, step: &StepIr, patch: &mut Patch) -> [NewOp; 2] {
        let (bags, width) = (self.kind.bags, self.kind.width);
        let stacked = self.stacked(step, patch);
        let view = op("aten::view", vec![Arg::Tensor(self.fused), ints(&[self.count(), bags, -1])], stacked);
        let select = |(at, &result): (usize, &TensorId)| {
            let at = at as i64;
            let offset = Arg::Int(at * bags * width);
            let strided = vec![Arg::Tensor(stacked), ints(&[bags, width]), ints(&[width, 1]), offset];
            let inputs = vec![Arg::Tensor(stacked), Arg::Int(0), Arg::Int(at)];
            op("aten::select", inputs, result).with(vec![op("aten::as_strided", strided, result)])
        };
        let unbind = Call {
            inputs: vec![Arg::Tensor(stacked), Arg::Int(0)],
            outputs: vec![Arg::Tensors(self.results.to_vec())],
            ..Call::default()
        };
        let selects = self.results.iter().enumerate().map(select).collect();
        [view, NewOp::new("aten::unbind", unbind).with(selects)]
    }

    /// Their backward functions, which join the bags' gradients into `gradient`.
    pub fn backward(
        &self,
        each: &[TensorId],
        gradient: TensorId,
        step: &StepIr,
        patch: &mut Patch,
    ) -> [NewOp; 2] {
        let (bags, width) = (self.kind.bags, self.kind.width);
        let flat = [self.count() * bags, width];
        let stacked = self.stacked(step, patch);
        let joined = patch.tensor(step, Tensor::contiguous(&flat, self.kind.dtype));
        let list = || vec![Arg::Tensors(each.to_vec()), Arg::Int(0)];
        let whole = [self.count(), bags, width];
        let stack = op("aten::stack", list(), stacked).with(vec![
            op("aten::cat", list(), joined),
            op("aten::view", vec![Arg::Tensor(joined), ints(&whole)], stacked),
        ]);
        let view = || vec![Arg::Tensor(stacked), ints(&flat)];
        let reshape = op("aten::reshape", view(), gradient).with(vec![op("aten::view", view(), gradient)]);
        [function("UnbindBackward0", each, vec![stack]), function("ViewBackward0", &[stacked], vec![reshape])]
    }
}
