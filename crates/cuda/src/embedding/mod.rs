//! Embedding tables on a GPU: gather, and bags over many tables at once, as `steptime_ops::embedding` does them.
//!
//! Tables, lookups and outputs lie in the device's memory. What is wrong with lookups is found by the kernels and
//! asked for afterwards, so that nothing waits in between.

mod backward;
mod bag;
mod gather;
mod group;
mod group_plan;
mod lanes;
mod lookups;
mod report;
mod row_check;
mod row_device;
mod row_kind;
mod row_numbers;
mod tables;

pub use backward::RowOptimizer;
pub use bag::{Forward, Sizes};
pub use gather::{Gather, GatherOrder, Wanted};
pub use group::{Grouping, Payload};
pub use lanes::Lanes;
pub use lookups::{Ints, Lookups, OwnedLookups};
pub use report::Faults;
pub(crate) use report::explain;
pub use row_numbers::RowSettings;
pub use tables::{Table, Tables};

/// Device code that every kernel over rows begins with.
pub(crate) const ROWS: &str = include_str!("rows.cuh");
