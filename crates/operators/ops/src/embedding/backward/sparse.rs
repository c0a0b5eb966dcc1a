//! The gradient of the rows that were looked up, without an optimizer.

use std::ops::Range;

use super::super::group::Grouping;
use super::super::{Bounds, Lookups, Tables};
use super::gradient::Factors;
use super::sum::Sums;
use super::sum::long::{self, Partials};
use super::{BackwardError, Gradient};
use crate::Cpu;
use crate::simd::{Kernel, Simd, dispatch};

/// Number of distinct rows that one part of the work sums.
const PART: usize = 512;

/// The gradient of one table: U distinct rows, ascending, and `[U, D]` values. All other rows have none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseGradient {
    /// The distinct rows.
    pub rows: Vec<usize>,
    /// Gradients of these rows, one after the other.
    pub values: Vec<f32>,
}

/// Computes the gradient of each table, as used by [`RowOptimizer::step`](super::RowOptimizer::step), for other kinds
/// of optimizers. `grouping` is that of `lookups` and `bounds`.
///
/// # Errors
///
/// Arguments that do not fit each other.
pub fn sparse_gradients(
    cpu: &Cpu,
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    grouping: &Grouping,
    bounds: Bounds,
    gradient: &Gradient<'_>,
) -> Result<Vec<SparseGradient>, BackwardError> {
    let factors = Factors::new(cpu, tables, lookups, grouping, bounds, gradient)?;
    let sums = factors.sums(tables, lookups, grouping, gradient);
    let mut partials: Vec<Partials> = sums.iter().map(|_| Partials::default()).collect();
    long::fill(cpu, &sums, &mut partials);
    let mut sparse: Vec<SparseGradient> = sums
        .iter()
        .map(|sums| SparseGradient {
            rows: sums.groups.distinct_rows().collect(),
            values: vec![0.0; sums.groups.distinct() * sums.dim],
        })
        .collect();
    let mut parts = Vec::new();
    for ((sums, partials), sparse) in sums.iter().zip(&partials).zip(&mut sparse) {
        let values = sparse.values.chunks_mut(PART * sums.dim).enumerate();
        parts.extend(values.map(|(part, values)| {
            let groups = part * PART..part * PART + values.len() / sums.dim;
            Part { sums, partials, groups, values }
        }));
    }
    cpu.run_with(&mut parts, |_, part| dispatch(cpu.arch(), part));
    Ok(sparse)
}

/// Some consecutive distinct rows of a table.
struct Part<'a> {
    sums: &'a Sums<'a>,
    partials: &'a Partials,
    groups: Range<usize>,
    values: &'a mut [f32],
}

impl Kernel for &mut Part<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut sum = vec![0.0; self.sums.dim];
        let groups = self.sums.groups;
        let end = groups.group(self.groups.end - 1).end;
        for (group, values) in self.groups.clone().zip(self.values.chunks_exact_mut(self.sums.dim)) {
            let place = groups.group(group).end + self.sums.ahead;
            if place < end {
                self.sums.prefetch(place);
            }
            let (gradient, factor) = self.sums.gradient(s, group, self.partials, &mut sum);
            for (value, gradient) in values.iter_mut().zip(gradient) {
                *value = gradient * factor;
            }
        }
    }
}
