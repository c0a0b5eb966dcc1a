//! The `attrs` of a node: from schema 1.0.2 on, they contain most fields.

use crate::json::{Cursor, Fault, Text};

/// Calls `take` with the name and the raw value of each attribute.
pub(super) fn each<'a>(
    cursor: &mut Cursor<'a>,
    mut take: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if !cursor.enter_array()? {
        return Ok(());
    }
    while cursor.item()? {
        if !cursor.enter_object()? {
            continue;
        }
        let (mut name, mut value) = (Text::default(), &b"null"[..]);
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"name" => name = cursor.string()?.unwrap_or_default(),
                b"value" => value = cursor.raw()?,
                _ => cursor.skip()?,
            }
        }
        take(name.raw, value)?;
    }
    Ok(())
}
