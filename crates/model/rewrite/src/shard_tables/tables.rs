//! The tables of a step: their lookups, gradients and updates.

use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::PlacedTable;
use crate::operators::lookups::{self, Lookup};
use crate::operators::table_training::{self, LookupBackward};

/// A table that is looked up once in a step.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub lookup: Lookup,
    pub trained: Option<LookupBackward>,
}

/// The tables of a step, in the order of lookup.
pub(super) fn find(step: &StepIr) -> Vec<Table> {
    let uses = Uses::find(step);
    let lookups = lookups::each(step);
    let trained = table_training::find(step, &uses, &lookups);
    lookups.into_iter().zip(trained).map(|(lookup, trained)| Table { lookup, trained }).collect()
}

impl Table {
    /// Its indices and offsets.
    pub fn inputs(&self) -> impl Iterator<Item = TensorId> {
        std::iter::once(self.lookup.indices).chain(self.lookup.offsets)
    }

    /// The ops that run for it in both passes, except those that make its inputs.
    pub fn roots(&self) -> impl Iterator<Item = OpId> {
        let trained = self.trained.as_ref().map_or(&[][..], |trained| &trained.roots);
        std::iter::once(self.lookup.op).chain(trained.iter().copied())
    }

    pub fn looked_up(&self, step: &StepIr) -> PlacedTable {
        let table = &step.tensors[self.lookup.table].value;
        let gradient = |trained: &LookupBackward| {
            trained
                .own
                .iter()
                .any(|&tensor| tensor != self.lookup.table && step.tensors[tensor].value.is_sparse())
        };
        PlacedTable {
            rows: table.size(0),
            columns: table.size(1),
            lookups: step.tensors[self.lookup.indices].value.numel() as i64,
            sparse: self.trained.as_ref().is_some_and(gradient),
        }
    }
}

/// Lookups per bag in the table with this index.
pub(super) fn lookups_of_a_bag(step: &StepIr, at: usize) -> Option<i64> {
    let tables = lookups::each(step);
    let lookup = tables.get(at)?;
    let all = step.tensors[lookup.indices].value.numel() as i64;
    Some(all / lookup.bags.max(1))
}
