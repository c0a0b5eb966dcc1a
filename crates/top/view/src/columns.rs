//! Tables as columns in one block of bytes: the numbers of a column are adjacent, so that they deflate well and a browser
//! reads them without parsing.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Position and encoding of a column in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Column {
    /// `u8`, `u32` (little-endian), or `d32`: each the difference from the one before, modulo 2^32.
    kind: &'static str,
    /// Offset of its first byte; a multiple of four.
    at: usize,
    /// Number of its numbers.
    len: usize,
}

/// The block, and the texts that columns refer to by number.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    bytes: Vec<u8>,
    texts: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Columns {
    /// Adds a column of small numbers.
    pub(crate) fn small(&mut self, numbers: impl IntoIterator<Item = u8>) -> Column {
        self.begin("u8", |bytes| {
            let before = bytes.len();
            bytes.extend(numbers);
            bytes.len() - before
        })
    }

    /// Adds a column of 32-bit numbers.
    pub(crate) fn whole(&mut self, numbers: impl IntoIterator<Item = u32>) -> Column {
        self.begin("u32", |bytes| extend(bytes, numbers.into_iter()))
    }

    /// Adds a column of numbers that mostly grow by small steps.
    pub(crate) fn growing(&mut self, numbers: impl IntoIterator<Item = u32>) -> Column {
        let mut before = 0_u32;
        let differences =
            numbers.into_iter().map(move |now| now.wrapping_sub(std::mem::replace(&mut before, now)));
        self.begin("d32", |bytes| extend(bytes, differences))
    }

    /// Returns the number of a text, adding the text if it is new.
    pub(crate) fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), number);
        number
    }

    /// Returns the texts, by their numbers.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn begin(&mut self, kind: &'static str, fill: impl FnOnce(&mut Vec<u8>) -> usize) -> Column {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let at = self.bytes.len();
        let len = fill(&mut self.bytes);
        Column { kind, at, len }
    }
}

fn extend(bytes: &mut Vec<u8>, numbers: impl Iterator<Item = u32>) -> usize {
    let before = bytes.len();
    numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
    (bytes.len() - before) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_lie_aligned_and_growing_ones_are_differences() {
        let mut columns = Columns::default();
        let small = columns.small([1, 2, 3]);
        let growing = columns.growing([10, 12, 11]);
        assert_eq!((small.at, small.len, growing.at, growing.len), (0, 3, 4, 3));
        assert_eq!(columns.bytes()[4..], [10, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255]);
        assert_eq!((columns.text("a"), columns.text("b"), columns.text("a")), (0, 1, 0));
        assert_eq!(columns.texts(), ["a", "b"]);
    }
}
