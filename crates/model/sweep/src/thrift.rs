//! Reader of Thrift's compact protocol that finds the length of a value: metadata of Parquet files are checked before they are read.

/// Deepest nesting of values.
const DEEPEST: u32 = 32;

const STRUCT: u8 = 12;

/// Bytes that hold values one after the other.
pub(crate) struct Values<'b> {
    /// Remaining bytes.
    pub(crate) bytes: &'b [u8],
}

impl Values<'_> {
    /// Returns the whole numbers among the fields of the next struct, each with its id, and moves past the struct; `None` if a value is cut
    /// off, or a collection claims more items than bytes are left.
    pub(crate) fn fields(&mut self) -> Option<Vec<(i64, i64)>> {
        self.structure(DEEPEST)
    }

    fn structure(&mut self, depth: u32) -> Option<Vec<(i64, i64)>> {
        let mut numbers = Vec::new();
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            let (step, kind) = (head >> 4, head & 15);
            if kind == 0 {
                return Some(numbers);
            }
            id = if step == 0 { self.number()? } else { id.checked_add(i64::from(step))? };
            match kind {
                // The value of a boolean is part of its kind.
                1 | 2 => {}
                4..=6 => numbers.push((id, self.number()?)),
                _ => self.skip_value(kind, depth)?,
            }
        }
    }

    /// Collections of booleans are refused: Parquet's metadata have none, and readers differ in their length.
    fn skip_value(&mut self, kind: u8, depth: u32) -> Option<()> {
        let within = depth.checked_sub(1)?;
        match kind {
            3 => self.skip(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.skip(8),
            8 => self.varint().and_then(|length| self.skip(length)),
            9 | 10 => {
                let head = self.byte()?;
                let short = u64::from(head >> 4);
                let count = if short == 15 { self.varint()? } else { short };
                self.items(count, &[head & 15], within)
            }
            11 => match self.varint()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    self.items(count, &[kinds >> 4, kinds & 15], within)
                }
            },
            STRUCT => self.structure(within).map(|_| ()),
            13 => self.skip(16),
            _ => None,
        }
    }

    fn items(&mut self, count: u64, kinds: &[u8], depth: u32) -> Option<()> {
        if count > self.bytes.len() as u64 {
            return None;
        }
        (0..count).try_for_each(|_| kinds.iter().try_for_each(|kind| self.skip_value(*kind, depth)))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(length).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a whole number, its sign in its last bit.
    fn number(&mut self) -> Option<i64> {
        let folded = self.varint()?;
        Some((folded >> 1).cast_signed() ^ -((folded & 1).cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Option<Vec<(i64, i64)>> {
        Values { bytes }.fields()
    }

    #[test]
    fn numbers_are_found_and_all_else_is_skipped() {
        // 1: 5, 2: -1, 3: "ab", 4: [7, 7], 5: {1: 3}, 6: true.
        let bytes =
            [0x15, 10, 0x15, 1, 0x18, 2, b'a', b'b', 0x19, 0x25, 14, 14, 0x1c, 0x15, 6, 0, 0x11, 0, 9];
        let mut values = Values { bytes: &bytes };
        assert_eq!(values.fields(), Some(vec![(1, 5), (2, -1)]));
        assert_eq!(values.bytes, [9]);
    }

    #[test]
    fn collections_beyond_the_bytes_are_refused() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0x07];
        for kind in [0x01, 0x07, 0x0c] {
            assert_eq!(fields(&[&[0x19, 0xf0 | kind][..], &huge, &[0; 40]].concat()), None);
        }
        assert_eq!(fields(&[0x18, 9, b'a', 0]), None);
        assert_eq!(fields(&[0x1c; 1000]), None, "nesting is bounded");
    }
}
