//! Exchanges of an op with other ranks of its job.

use steptime_aten::{Arg, OpCall};
use steptime_graph::names::CollectiveKind;
use steptime_graph::{Collective, Group};
use steptime_trace::Bytes;

/// The group of all ranks.
const WORLD: &str = "world";

/// A collective that an op launches, among all ranks of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Kind of collective.
    pub kind: CollectiveKind,
    /// Number of ranks.
    pub ranks: u32,
}

impl Exchange {
    /// The collective of one rank: it sends the first tensor of the call and receives the last, which may be the same.
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
