//! What an op does together with other ranks of its job.

use steptime_aten::{Arg, OpCall};
use steptime_graph::names::CollectiveKind;
use steptime_graph::{Collective, Group};
use steptime_trace::Bytes;

/// The group of all ranks.
const WORLD: &str = "world";

/// A collective that an op launches, among all ranks of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// What is done.
    pub kind: CollectiveKind,
    /// How many ranks take part.
    pub ranks: u32,
}

impl Exchange {
    /// The collective as one rank takes part in it: what it sends is the first tensor of its call, what it receives the last, which
    /// may be the same.
    pub(crate) fn collective(self, call: Option<&OpCall>) -> Collective {
        let mut tensors = call.into_iter().flat_map(|call| call.inputs.iter().flat_map(Arg::tensors));
        let first = tensors.next();
        let last = tensors.next_back().or(first);
        let bytes =
            |tensor: Option<&steptime_aten::Tensor>| Bytes(tensor.map_or(0, steptime_aten::Tensor::bytes));
        Collective {
            kind: self.kind,
            sent: bytes(first),
            received: bytes(last),
            group: Group { name: WORLD.to_owned(), ranks: Vec::new(), size: Some(self.ranks) },
            sequence: None,
            between: None,
            sent_to: Vec::new(),
        }
    }
}
