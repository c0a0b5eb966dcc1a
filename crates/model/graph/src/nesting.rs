//! The deepest nesting of ops that is read: one limit for every walk that goes from an op to those inside it.

use crate::error::Error;

/// The most ops around an op, itself included. PyTorch's ops nest some thirty deep; labels of a script add a few.
pub const DEEPEST: usize = 500;

/// Refuses ops that nest deeper than [`DEEPEST`].
///
/// # Errors
/// Where they do.
pub fn check_nesting(depth: usize) -> Result<(), Error> {
    if depth > DEEPEST { Err(Error::TooDeep { depth }) } else { Ok(()) }
}
