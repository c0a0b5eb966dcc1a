//! Origins of sparse tensors.

use rustc_hash::FxHashMap;
use steptime_step::{StepIr, TensorId};

use super::OpTensors;

/// Indices and values of each sparse tensor.
#[derive(Debug, Default)]
pub(super) struct Sparse(FxHashMap<TensorId, (TensorId, TensorId)>);

impl Sparse {
    /// The sparse tensors made in a step.
    pub fn find(step: &StepIr) -> Sparse {
        let mut made = FxHashMap::default();
        for op in step.running() {
            let row = &step.ops[op];
            let Some(call) = row.call.as_deref().filter(|_| row.name.starts_with("aten::_sparse_coo_tensor"))
            else {
                continue;
            };
            let dense: Vec<TensorId> = call.takes().filter(|&t| !step.tensors[t].value.is_sparse()).collect();
            if let ([indices, values], Some(sparse)) = (&dense[..], call.gives().next()) {
                made.insert(sparse, (*indices, *values));
            }
        }
        Sparse(made)
    }
}

impl OpTensors<'_> {
    /// Indices and values of the op's sparse argument.
    pub(super) fn made(&self) -> Option<(TensorId, TensorId)> {
        let x = self.input(0)?;
        let alike = |(other, _): &(&TensorId, _)| self.shape(**other) == self.shape(x);
        self.made_of
            .sparse
            .0
            .get(&x)
            .or_else(|| self.made_of.sparse.0.iter().find(alike).map(|(_, made)| made))
            .copied()
    }
}
