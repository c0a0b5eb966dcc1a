//! The gradient of weights one lookup at a time.

use super::{Bags, Work, check};
use crate::embedding::codec::decode;
use crate::embedding::{Bounds, EmbeddingError, Lookups, Pooling, Report, Tables};

/// Computes the same as [`weight_gradient`](super::weight_gradient), one bag after the other.
///
/// # Errors
///
/// As for [`weight_gradient`](super::weight_gradient).
pub fn weight_gradient_reference(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    (grad, stride): (&[f32], usize),
    out: &mut [f32],
) -> Result<Report, EmbeddingError> {
    check(tables, lookups, (grad, stride), out.len())?;
    let mut report = Report::default();
    for (at, table) in tables.iter().enumerate() {
        let bags = 0..lookups.bags();
        lookups.report(tables, at, bags.clone(), bounds, &mut report)?;
        let mean = tables.pooling(at) == Pooling::Mean;
        let grad = grad.get(tables.column(at)..).unwrap_or_default();
        let work = Work { table, mean, lookups: Bags::from_lookups(lookups, at), bags, bounds, grad, stride };
        products(&work, &mut out[lookups.table(at)]);
    }
    Ok(report)
}

/// The products of some bags of one table, whose offsets increase.
pub(super) fn products(work: &Work<'_>, out: &mut [f32]) {
    let table = work.table;
    let mut row_values = vec![0.0; table.dim()];
    let mut out = out.iter_mut();
    for bag in work.bags.clone() {
        let row = |place| {
            let index = usize::try_from(work.lookups.indices.at(place)).ok();
            index.filter(|&index| index < table.rows())
        };
        let places = work.lookups.bag(bag);
        let count = match work.bounds {
            Bounds::Ignore => places.clone().filter(|&place| row(place).is_some()).count(),
            _ => places.len(),
        };
        let scale = if work.mean { 1.0 / count as f32 } else { 1.0 };
        for (place, out) in places.zip(&mut out) {
            *out = 0.0;
            if let Some(row) = row(place) {
                decode(table.element(), table.row(row), &mut row_values);
                *out = dot(work.grad(bag), &row_values) * scale;
            }
        }
    }
}

/// The sum of the products, column `j` in sum `j % 16`, which are then added pairwise.
fn dot(grad: &[f32], row: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (grad, row) in grad.chunks(16).zip(row.chunks(16)) {
        for ((sum, grad), row) in sums.iter_mut().zip(grad).zip(row) {
            *sum = grad.mul_add(*row, *sum);
        }
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
    }
    sums[0]
}
