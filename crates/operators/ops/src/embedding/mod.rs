//! Embedding tables: gather, bags over many tables at once, and their gradients.
//!
//! There are T [`Table`]s of E rows and D columns each, and a batch of B bags for each table. Every bag sums (or
//! averages, or takes the largest of, or keeps apart) the rows of its [`Lookups`]. The output has one row for each bag,
//! with the columns of the tables next to each other: `[B, D_0 + D_1 + ...]`.

pub mod backward;
mod bag;
mod bounds;
mod check;
mod codec;
mod element;
mod error;
mod gather;
pub mod group;
mod ints;
mod lookups;
mod order;
mod storage;
mod table;
mod table_values;
mod tables;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
mod weight_gradient;
mod weights;

pub use crate::huge::HugeBuffer;
pub use bag::{forward, forward_reference};
pub use bounds::{BadLookup, Bounds, Report};
pub use element::{Element, Plain, Scale};
pub use error::EmbeddingError;
pub use gather::{gather, sequence};
pub use ints::Ints;
pub use lookups::Lookups;
pub use order::{Order, Plan, plan};
pub use table::{Table, Tables};
pub use table_values::TableValues;
pub use tables::{Columns, Pooling, TableSet};
pub use weight_gradient::{weight_gradient, weight_gradient_reference};
pub use weights::{Weights, WeightsMut};

/// Checks that a slice holds these rows of these columns, `stride` elements apart.
fn check_rows(
    what: &'static str,
    rows: usize,
    columns: usize,
    found: usize,
    stride: usize,
) -> Result<(), EmbeddingError> {
    let needed = rows.checked_sub(1).map_or(Some(0), |rows| rows.checked_mul(stride)?.checked_add(columns));
    let needed = needed.unwrap_or(usize::MAX);
    if found < needed || stride < columns {
        return Err(EmbeddingError::Size { what, found, stride, rows, columns, needed });
    }
    Ok(())
}
