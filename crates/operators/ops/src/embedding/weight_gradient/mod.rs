//! The gradient of per-sample weights.

mod reference;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

use std::ops::Range;

pub use reference::weight_gradient_reference;

use super::bag::Bags;
use super::{Bounds, EmbeddingError, Lookups, Pooling, Report, Table, Tables};
use crate::Cpu;
use crate::arch::Arch;
use crate::shared::Shared;
#[cfg(target_arch = "aarch64")]
use crate::simd::Pair;

/// Number of lookups of a part.
const PART: usize = 4096;

/// Writes the gradient of each lookup's weight, `[N]`: the gradient of its bag's output, a row of `[B, D_0 + D_1 +
/// ...]` with rows `stride` apart, times the row of the lookup; for a mean, times `1 / L`.
///
/// A lookup out of range has the gradient 0 unless it is an error. The result is bit-identical on every instruction set
/// and at any number of threads: products are summed in 16 sums, column `j` in sum `j % 16`, which are then added
/// pairwise.
///
/// # Errors
///
/// Offsets that do not fit the tables, or decrease; slices too small; pooling other than sum and mean; with
/// [`Bounds::Error`], an index that is out of range.
pub fn weight_gradient(
    cpu: &Cpu,
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    (grad, stride): (&[f32], usize),
    out: &mut [f32],
) -> Result<Report, EmbeddingError> {
    check(tables, lookups, (grad, stride), out.len())?;
    let report = lookups.check(cpu, tables, bounds)?;
    // Parts are sized in bags rather than lookups, by the average number of lookups of a bag.
    let per_bag = (lookups.len() / (tables.len() * lookups.bags()).max(1)).max(1);
    let bags_of_part = PART.div_ceil(per_bag);
    let mut parts = Vec::new();
    for at in 0..tables.len() {
        let count = lookups.bags().div_ceil(bags_of_part);
        parts.extend((0..count).map(|part| (at, crate::cpu::share(lookups.bags(), count, part))));
    }
    let shared = Shared::new(out);
    cpu.run(parts.len(), |part| {
        let (at, bags) = &parts[part];
        let places = lookups.bag(*at, bags.start).start..lookups.bag(*at, bags.end - 1).end;
        // SAFETY: each part is done once, and its lookups are its own: offsets increase from bag to bag and from table
        // to table, as was checked above.
        let out = unsafe { shared.range(places.start, places.len()) };
        let work = Work {
            table: tables.table(*at),
            mean: tables.pooling(*at) == Pooling::Mean,
            lookups: Bags::from_lookups(lookups, *at),
            bags: bags.clone(),
            bounds,
            grad: grad.get(tables.column(*at)..).unwrap_or_default(),
            stride,
        };
        match cpu.arch() {
            #[cfg(target_arch = "x86_64")]
            Arch::Avx512(token) if report.out_of_range == 0 => vector::products(token, &work, out),
            #[cfg(target_arch = "x86_64")]
            Arch::Avx2(token) if report.out_of_range == 0 => vector::products(token, &work, out),
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(token) if report.out_of_range == 0 => vector::products(Pair(token), &work, out),
            _ => reference::products(&work, out),
        }
    });
    Ok(report)
}

/// Some bags of one table.
struct Work<'a> {
    table: &'a Table<'a>,
    mean: bool,
    lookups: Bags<'a>,
    bags: Range<usize>,
    bounds: Bounds,
    /// The gradient, from the table's first column on.
    grad: &'a [f32],
    stride: usize,
}

impl Work<'_> {
    /// Returns the gradient of a bag's output.
    #[inline]
    fn grad(&self, bag: usize) -> &[f32] {
        &self.grad[bag * self.stride..][..self.table.dim()]
    }
}

fn check(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    (grad, stride): (&[f32], usize),
    out: usize,
) -> Result<(), EmbeddingError> {
    lookups.check_shape(tables)?;
    super::check_rows("gradient of the output", lookups.bags(), tables.columns(), grad.len(), stride)?;
    super::check_rows("gradient of the weights", lookups.len(), 1, out, 1)?;
    for (table, rows) in tables.iter().enumerate() {
        if !matches!(tables.pooling(table), Pooling::Sum | Pooling::Mean) {
            let why = "only a sum or a mean has per-sample weights, and so a gradient of them";
            return Err(EmbeddingError::Pooling { table, name: rows.name().to_owned(), why });
        }
    }
    Ok(())
}
