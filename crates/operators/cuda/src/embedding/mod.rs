//! Embedding tables on a GPU: gather, and bags over many tables at once, with the semantics of
//! `steptime_ops::embedding`.
//!
//! Tables, lookups and outputs are stored in the device's memory. The kernels find errors in lookups, which are queried
//! afterwards, so that nothing waits in between.

mod backward;
mod bag;
mod bag_plan;
mod bag_sizes;
mod clear;
mod dense;
mod dense_tables;
mod gather;
mod gather_plan;
mod group;
mod group_kernels;
mod group_plan;
mod lookups;
mod offsets;
mod payload;
mod report;
mod row_check;
mod row_device;
mod row_kind;
mod row_layout;
mod row_numbers;
mod sizes;
mod tables;

pub use backward::RowOptimizer;
pub use bag::Forward;
pub use bag_sizes::BagSizes;
pub use dense::DenseGradient;
pub use dense_tables::DenseGradients;
pub use gather::{Gather, GatherRows};
pub use gather_plan::GatherOrder;
pub use group::Grouping;
pub use lookups::{Ints, Lookups, OwnedLookups};
pub use offsets::OffsetsFromSizes;
pub use payload::Payload;
pub use report::Faults;
pub(crate) use report::explain;
pub use row_numbers::RowSettings;
pub use sizes::Sizes;
pub use tables::{Table, Tables};

/// Number of elements that `rows` rows of `columns` columns span, `stride` apart; `usize::MAX` where the number
/// overflows.
pub(crate) fn span(rows: usize, columns: usize, stride: usize) -> usize {
    rows.checked_sub(1).map_or(0, |before| before.saturating_mul(stride).saturating_add(columns))
}

/// Common beginning of the device code of all kernels over rows.
pub(crate) const ROWS: &str = include_str!("rows.cuh");

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn rows_without_number_need_more_than_there_can_be() {
        assert_eq!((span(0, 7, 9), span(1, 7, 9), span(3, 7, 9)), (0, 7, 25));
        assert_eq!(span((1 << 29) + 1, 8, 1 << 35), usize::MAX);
    }
}
