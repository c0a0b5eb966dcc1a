//! Ops that exchange data between ranks, as run by `torch.distributed` over NCCL.

use steptime_aten::derive::exchange::{NOTE, names};
use steptime_aten::{Arg, Dtype};
use steptime_graph::CollectiveKind;
use steptime_step::{Call, Exchange, NewOp, StepIr, StreamWait, TensorId};

/// A collective to insert.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewCollective {
    pub kind: CollectiveKind,
    pub ranks: u32,
    /// Tensor that this rank sends ...
    pub sent: TensorId,
    /// ... and tensor that it receives, possibly the same memory.
    pub received: TensorId,
    /// Stream of its own, where it has one; the main stream then does not wait.
    pub beside: Option<u32>,
}

impl NewCollective {
    /// The op that requests the collective, with the ops noted and launched by NCCL inside it.
    pub fn op(&self) -> NewOp {
        let (name, label) = names(self.kind);
        let both = if self.sent == self.received {
            vec![Arg::Tensors(vec![self.sent])]
        } else {
            vec![Arg::Tensor(self.received), Arg::Tensor(self.sent)]
        };
        let asked =
            both.into_iter().chain([Arg::None, Arg::None, Arg::Bool(self.beside.is_some()), Arg::Int(-1)]);
        let call =
            Call { inputs: asked.collect(), outputs: vec![Arg::Tensor(self.received)], ..Call::default() };
        let data =
            Call { inputs: vec![Arg::Tensor(self.sent), Arg::Tensor(self.received)], ..Call::default() };
        let exchange = Exchange { kind: self.kind, ranks: self.ranks };
        let launched = NewOp::new(label, data).exchanging(exchange).on_stream(self.beside.unwrap_or(0));
        let mut noted = NewOp::around(NOTE, vec![launched]);
        noted.waits = self.beside.map(|waiting| StreamWait { waiting, awaited: 0 });
        NewOp::new(name, call).with(vec![noted])
    }
}

/// An op that makes the main stream wait for a stream of collectives.
pub(crate) fn wait(stream: u32) -> NewOp {
    NewOp::waiting(NOTE, StreamWait { waiting: 0, awaited: stream })
}

/// First stream that no op of a step uses.
pub(crate) fn free_stream(step: &StepIr) -> u32 {
    1 + step.ops.iter().map(|op| op.stream).max().unwrap_or(0)
}

/// A one-dimensional tensor on the device.
pub(crate) fn flat(elements: i64, dtype: Dtype) -> steptime_aten::Tensor {
    steptime_aten::Tensor::contiguous(&[elements], dtype)
}
