//! Corresponding ops of several bags.

use rustc_hash::FxHashMap;
use steptime_step::{OpId, StepIr, TensorId};

use crate::error::Error;

/// For each op of the first bag, the corresponding op of each bag.
#[derive(Debug, Clone, Default)]
pub(super) struct AlignedOps {
    pub rows: Vec<Vec<OpId>>,
}

impl AlignedOps {
    /// Adds an op of each bag with all ops inside it.
    pub fn add(&mut self, step: &StepIr, roots: &[OpId]) -> Result<(), Error> {
        let trees: Vec<Vec<OpId>> = roots.iter().map(|&root| step.subtree(root)).collect();
        let Some(first) = trees.first() else { return Ok(()) };
        for tree in &trees {
            let name = |op: &OpId| &step.ops[*op].name;
            if !tree.iter().map(name).eq(first.iter().map(name)) {
                return Err(Error::BagsDiffer { op: step.ops[roots[0]].name.clone() });
            }
        }
        self.rows.extend((0..first.len()).map(|at| trees.iter().map(|tree| tree[at]).collect()));
        Ok(())
    }

    /// For each tensor of the first bag, the corresponding tensor of each bag.
    pub fn tensors(&self, step: &StepIr) -> Result<FxHashMap<TensorId, Vec<TensorId>>, Error> {
        let mut all: FxHashMap<TensorId, Vec<TensorId>> = FxHashMap::default();
        for row in &self.rows {
            let each: Vec<Vec<TensorId>> = row
                .iter()
                .map(|&op| {
                    step.ops[op].call.iter().flat_map(|call| call.takes().chain(call.gives())).collect()
                })
                .collect();
            let count = each[0].len();
            if each.iter().any(|tensors| tensors.len() != count) {
                return Err(Error::BagsDiffer { op: step.ops[row[0]].name.clone() });
            }
            for at in 0..count {
                all.entry(each[0][at]).or_insert_with(|| each.iter().map(|tensors| tensors[at]).collect());
            }
        }
        Ok(all)
    }
}
