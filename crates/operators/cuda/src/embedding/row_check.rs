//! Checks of the tables and gradients of a backward pass.

use steptime_ops::embedding::{EmbeddingError, Pooling};

use super::{Lookups, Sizes, Tables};
use crate::{Error, Float, Slice};

/// Fails unless there are gradients of all bags, or of all lookups where tables are not pooled.
pub(super) fn check_gradient<G: Float>(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    gradient: Slice<'_, G>,
    stride: usize,
) -> Result<(), Error> {
    let apart = tables.pooling(0) == Pooling::None;
    let (rows, columns) =
        if apart { (lookups.len(), tables.table(0).dim()) } else { (lookups.bags(), tables.columns()) };
    let found = gradient.len();
    let needed = super::span(rows, columns, stride);
    if found < needed || stride < columns {
        let what = "gradient of the output";
        return Err(EmbeddingError::Size { what, found, stride, rows, columns, needed }.into());
    }
    Ok(())
}

/// Fails unless the tables can be trained together.
pub(super) fn check_tables(tables: &Tables<'_>, sizes: &Sizes) -> Result<(), Error> {
    if tables.is_empty() || u32::try_from(sizes.stride).is_err() {
        return Err(Error::Unsupported {
            what: format!("a backward pass for {} tables, stride {}", tables.len(), sizes.stride),
            remedy: "give at least one table, and rows of fewer than 2^32 elements",
        });
    }
    let apart = tables.pooling(0) == Pooling::None;
    for (at, table) in tables.iter().enumerate() {
        let (name, element, pooling) = (table.name().to_owned(), table.element(), tables.pooling(at));
        if element.is_quantized() {
            return Err(EmbeddingError::NotTrainable { table: name, element, why: "quantized" }.into());
        }
        let why = match pooling {
            Pooling::Max if sizes.weighted => {
                "a maximum takes no per-sample weights: leave them out, or choose another pooling"
            }
            pooling if (pooling == Pooling::None) != apart => {
                "gradients of lookups and of bags do not fit one array: train those tables apart"
            }
            _ => continue,
        };
        return Err(EmbeddingError::Pooling { table: at, name, why }.into());
    }
    Ok(())
}
