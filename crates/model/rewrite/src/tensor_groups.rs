//! Groups of optimizer tensors: a parameter, its gradient and its states.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Device};
use steptime_graph::execution::StorageId;
use steptime_step::{Call, OpId, StepIr, TensorId};

/// Memory location of a tensor: views that begin at the same address are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    At(StorageId, u64),
    Of(TensorId),
}

impl Place {
    fn from_tensor(step: &StepIr, tensor: TensorId) -> Place {
        let row = &step.tensors[tensor];
        // Sparse and empty tensors have no memory of their own.
        let own = row.storage.filter(|_| !row.value.is_sparse() && row.value.numel() > 0);
        own.map_or(Place::Of(tensor), |storage| Place::At(storage, row.value.offset))
    }
}

/// Groups of tensors of some ops: tensors of one op belong together; in lists, those at the same position.
#[derive(Debug, Default)]
pub(crate) struct TensorGroups {
    numbers: FxHashMap<Place, usize>,
    /// Union-find parent of each place; the root of a group is its own parent.
    above: Vec<usize>,
}

impl TensorGroups {
    /// Groups of the tensors of ops that update parameters. Scalars and host tensors belong to no parameter.
    pub fn find(step: &StepIr, ops: &[OpId]) -> TensorGroups {
        let mut linked = TensorGroups::default();
        for call in ops.iter().filter_map(|&op| step.ops[op].call.as_deref()) {
            let is_number = |tensor: TensorId| {
                let value = &step.tensors[tensor].value;
                value.shape.is_empty() || value.device != Device::Cuda
            };
            let single = call.inputs.iter().chain(&call.outputs).filter_map(|arg| match arg {
                Arg::Tensor(tensor) if !is_number(*tensor) => Some(*tensor),
                _ => None,
            });
            linked.join(step, single);
            let length = longest(call);
            for at in 0..length {
                let listed = lists(call).filter(|list| list.len() == length).map(|list| list[at]);
                linked.join(step, listed.filter(|&tensor| !is_number(tensor)));
            }
        }
        linked
    }

    fn join(&mut self, step: &StepIr, tensors: impl Iterator<Item = TensorId>) {
        let mut first = None;
        for tensor in tensors {
            let next = self.above.len();
            let number = *self.numbers.entry(Place::from_tensor(step, tensor)).or_insert(next);
            if number == next {
                self.above.push(next);
            }
            let root = self.root(number);
            let first = *first.get_or_insert(root);
            let first = self.root(first);
            self.above[root] = first;
        }
    }

    fn root(&self, mut number: usize) -> usize {
        while self.above[number] != number {
            number = self.above[number];
        }
        number
    }

    /// The group of a tensor; `None` where no op takes or returns it.
    pub fn set(&self, step: &StepIr, tensor: TensorId) -> Option<usize> {
        self.numbers.get(&Place::from_tensor(step, tensor)).map(|&number| self.root(number))
    }
}

/// The input and output tensor lists of a call.
pub(crate) fn lists(call: &Call) -> impl Iterator<Item = &Vec<TensorId>> {
    call.inputs.iter().chain(&call.outputs).filter_map(|arg| match arg {
        Arg::Tensors(list) => Some(list),
        _ => None,
    })
}

/// Length of the longest tensor list; 0 without any.
pub(crate) fn longest(call: &Call) -> usize {
    lists(call).map(Vec::len).max().unwrap_or(0)
}
