//! Limit of the nesting depth of ops: the same for every walk from an op to those inside it.

use crate::error::Error;

/// Maximum nesting depth of an op, itself included. PyTorch's ops nest about thirty deep; labels of a script add a few.
pub const DEEPEST: usize = 500;

/// Rejects ops that nest deeper than [`DEEPEST`].
///
/// # Errors
/// [`Error::TooDeep`] if they nest deeper.
pub fn check_nesting(depth: usize) -> Result<(), Error> {
    if depth > DEEPEST { Err(Error::TooDeep { depth }) } else { Ok(()) }
}
