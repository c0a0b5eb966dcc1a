//! Sparse tensors: their memory is that of their values and indices.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use steptime_aten::{Dtype, Tensor as Value};

use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// Ops that make a sparse tensor of indices and values.
const MADE_OF: [&str; 3] = [
    "aten::_sparse_coo_tensor_unsafe",
    "aten::_sparse_coo_tensor_with_dims_and_tensors",
    "aten::sparse_coo_tensor",
];
/// Ops that return indices or values.
pub(super) const PARTS: [&str; 4] = ["aten::_indices", "aten::_values", "aten::indices", "aten::values"];

/// The dense tensors of a sparse one.
pub(super) type Parts = SmallVec<[TensorId; 2]>;

/// Parts of the sparse tensors of a step.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    /// Indices and values of each sparse tensor.
    pub parts: FxHashMap<TensorId, Parts>,
    /// Bytes of the values, where no op shows the parts.
    pub values: FxHashMap<TensorId, u64>,
}

impl Sparse {
    /// The sparse tensors of a step; `ended` are its ops, those inside another before it.
    pub fn find(step: &StepIr, ended: &[OpId]) -> Sparse {
        let mut sparse = Sparse::default();
        for &op in ended {
            if let Some(call) = step.ops[op].call.as_deref() {
                sparse.add(step, &step.ops[op].name, call);
            }
        }
        sparse
    }

    fn add(&mut self, step: &StepIr, name: &str, call: &Call) {
        let is_sparse = |tensor: &TensorId| step.tensors[*tensor].value.is_sparse();
        let (taken, given) = (|| call.takes().filter(is_sparse), || call.gives().filter(is_sparse));
        let dense = |tensors: &mut dyn Iterator<Item = TensorId>| -> Parts {
            tensors.filter(|tensor| !is_sparse(tensor)).collect()
        };
        if PARTS.contains(&name) {
            let parts = dense(&mut call.gives());
            taken().for_each(|tensor| self.parts.entry(tensor).or_default().extend(parts.clone()));
        }
        for tensor in given().filter(|tensor| call.takes().all(|taken| taken != *tensor)) {
            if self.parts.contains_key(&tensor) || self.values.contains_key(&tensor) {
                continue;
            }
            let of_taken = || taken().find_map(|taken| self.parts.get(&taken)).cloned();
            let value = &step.tensors[tensor].value;
            if MADE_OF.contains(&name) {
                self.parts.insert(tensor, dense(&mut call.takes()));
            } else if let Some(parts) = of_taken() {
                self.parts.insert(tensor, parts);
            } else if let Some(indices) = call.takes().find(|&taken| is_index(&step.tensors[taken].value)) {
                // The gradient of lookups: one row per lookup.
                let lookups = step.tensors[indices].value.numel();
                self.parts.insert(tensor, Parts::from_slice(&[indices]));
                self.values.insert(tensor, lookups.saturating_mul(bytes_of_a_row(value)));
            }
        }
    }
}

fn is_index(tensor: &Value) -> bool {
    matches!(tensor.dtype, Dtype::I64 | Dtype::I32) && !tensor.shape.is_empty()
}

fn bytes_of_a_row(table: &Value) -> u64 {
    let sizes = table.shape.iter().skip(1).map(|&size| u64::try_from(size).unwrap_or(0));
    sizes.fold(table.dtype.size(), u64::saturating_mul)
}
