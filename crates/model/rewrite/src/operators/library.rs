//! Libraries whose operators replace PyTorch's.

use steptime_step::StepIr;

use super::lookups::{Lookup, described};

/// A library of operators on embedding tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    /// `steptime.operators`.
    Steptime,
    /// `steptime.operators`, with dense gradients of the tables for an optimizer of the step.
    SteptimeDense,
    /// `fbgemm_gpu`.
    Fbgemm,
}

/// FBGEMM reads rows in vectors of four elements.
const VECTOR: i64 = 4;
/// Maximum number of columns of its kernels.
const WIDEST: i64 = 2048;

impl Library {
    /// Whether its backward pass updates the tables.
    pub fn updates_tables(self) -> bool {
        self != Library::SteptimeDense
    }

    /// Reason why the library does not support a lookup.
    pub fn refuses(self, step: &StepIr, lookup: &Lookup) -> Option<String> {
        let fits = lookup.width % VECTOR == 0 && lookup.width <= WIDEST;
        let refuses = self == Library::Fbgemm && !fits;
        refuses.then(|| {
            let table = described(step, lookup.table);
            format!("{table}: FBGEMM needs a multiple of {VECTOR} columns, at most {WIDEST}")
        })
    }
}
