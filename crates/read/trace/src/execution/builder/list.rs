//! Lists parallel to the values of a node: shapes, strides, types.

use crate::json::Cursor;

/// Reader of a list that may be missing or shorter than its parallel lists.
pub(super) struct List<'a> {
    cursor: Cursor<'a>,
    open: bool,
}

impl<'a> List<'a> {
    pub(super) fn new(raw: &'a [u8]) -> List<'a> {
        let mut cursor = Cursor::new(raw);
        let open = !raw.is_empty() && cursor.enter_array() == Ok(true);
        List { cursor, open }
    }

    /// Returns the next item as written; empty if there is none.
    pub(super) fn next_raw(&mut self) -> &'a [u8] {
        self.open = self.open && self.cursor.item() == Ok(true);
        if !self.open {
            return b"";
        }
        self.cursor.raw().unwrap_or_else(|_| {
            self.open = false;
            b""
        })
    }

    /// Returns the contents of the next string; empty if there is none.
    pub(super) fn next_text(&mut self) -> &'a [u8] {
        let raw = self.next_raw();
        raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or_default()
    }
}
