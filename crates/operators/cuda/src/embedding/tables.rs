//! Tables in the device's memory.

use steptime_ops::embedding::{Columns, Element, EmbeddingError, TableSet};

use crate::{Buffer, Error, Slice, SliceMut, Stream};

/// A table of E rows and D columns on a device, in memory of its own or of another owner.
#[derive(Debug)]
pub struct Table<'a> {
    name: String,
    rows: usize,
    dim: usize,
    element: Element,
    pitch: usize,
    storage: Storage<'a>,
}

#[derive(Debug)]
enum Storage<'a> {
    Borrowed(Slice<'a, u8>),
    BorrowedMut(SliceMut<'a, u8>),
    Owned(Buffer<u8>),
}

/// Largest number of rows: the number after the last represents a row that does not exist.
const MOST_ROWS: usize = u32::MAX as usize;

impl<'a> Table<'a> {
    /// A read-only table `[rows, dim]` over device memory, with rows `pitch` bytes apart. The last row's padding
    /// belongs to it.
    ///
    /// # Errors
    ///
    /// A shape, pitch and memory that do not fit each other, or too many rows.
    pub fn borrow(
        name: &str,
        bytes: Slice<'a, u8>,
        shape: [usize; 2],
        element: Element,
        pitch: usize,
    ) -> Result<Table<'a>, Error> {
        Table::new(name, shape, element, pitch, Storage::Borrowed(bytes))
    }

    /// A table like that of [`Table::borrow`], over memory that training changes.
    ///
    /// # Errors
    ///
    /// As those of [`Table::borrow`].
    pub fn borrow_mut(
        name: &str,
        bytes: SliceMut<'a, u8>,
        shape: [usize; 2],
        element: Element,
        pitch: usize,
    ) -> Result<Table<'a>, Error> {
        Table::new(name, shape, element, pitch, Storage::BorrowedMut(bytes))
    }

    /// A table that owns its buffer.
    ///
    /// # Errors
    ///
    /// As those of [`Table::borrow`].
    pub fn own(
        name: &str,
        bytes: Buffer<u8>,
        shape: [usize; 2],
        element: Element,
        pitch: usize,
    ) -> Result<Table<'static>, Error> {
        Table::new(name, shape, element, pitch, Storage::Owned(bytes))
    }

    /// A copy of a host table, with the same pitch.
    ///
    /// # Errors
    ///
    /// Not enough memory, or too many rows.
    pub fn upload(
        stream: &Stream,
        table: &steptime_ops::embedding::Table<'_>,
    ) -> Result<Table<'static>, Error> {
        let (rows, pitch) = (table.rows(), table.pitch());
        let used = (rows - 1) * pitch + table.row_bytes();
        let mut buffer = Buffer::zeros(stream, rows * pitch)?;
        buffer.as_mut().slice(0..used).write(stream, &table.bytes()[..used])?;
        Table::own(table.name(), buffer, [rows, table.dim()], table.element(), pitch)
    }

    fn new(
        name: &str,
        [rows, dim]: [usize; 2],
        element: Element,
        pitch: usize,
        storage: Storage<'a>,
    ) -> Result<Table<'a>, Error> {
        let table = || name.to_owned();
        if rows == 0 || dim == 0 || dim > i32::MAX as usize / 8 {
            return Err(EmbeddingError::Shape { table: table(), rows, dim, element }.into());
        }
        if rows >= MOST_ROWS {
            return Err(Error::Unsupported {
                what: format!("table {name:?} of {rows} rows"),
                remedy: "a kernel counts rows in 32 bits: cut the table in two",
            });
        }
        let (bytes, align) = (element.row_bytes(dim), element.align());
        if pitch < bytes || !pitch.is_multiple_of(align) || pitch > u32::MAX as usize {
            return Err(EmbeddingError::Pitch { table: table(), pitch, dim, bytes, element, align }.into());
        }
        let mut made = Table { name: table(), rows, dim, element, pitch, storage };
        let (found, needed) = (made.slice().len(), rows.saturating_mul(pitch));
        if found < needed {
            return Err(EmbeddingError::Storage { table: table(), rows, pitch, found, needed }.into());
        }
        if !made.slice().address().is_multiple_of(align as u64) {
            return Err(Error::Unsupported {
                what: format!("table {name:?} of {element} at an address that is not a multiple of {align}"),
                remedy: "give memory that is aligned for its elements",
            });
        }
        made.name.shrink_to_fit();
        Ok(made)
    }

    fn slice(&self) -> Slice<'_, u8> {
        match &self.storage {
            Storage::Borrowed(slice) => *slice,
            Storage::BorrowedMut(slice) => slice.as_ref(),
            Storage::Owned(buffer) => buffer.as_ref(),
        }
    }

    /// Name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of rows, E.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, D.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The type of its elements.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// Bytes from row to row.
    #[must_use]
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// All its bytes.
    #[must_use]
    pub fn bytes(&self) -> Slice<'_, u8> {
        self.slice()
    }

    /// All its bytes, mutable; `None` where it is read-only.
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<SliceMut<'_, u8>> {
        match &mut self.storage {
            Storage::Borrowed(_) => None,
            Storage::BorrowedMut(slice) => {
                let len = slice.len();
                Some(slice.slice(0..len))
            }
            Storage::Owned(buffer) => Some(buffer.as_mut()),
        }
    }

    /// Alignment of every row's start in bytes, at most 16.
    #[must_use]
    pub fn align(&self) -> usize {
        let of = |number: u64| 1_usize << number.trailing_zeros().min(4);
        of(self.slice().address()).min(of(self.pitch as u64))
    }
}

/// Tables on a device with the pooling of each, whose columns are adjacent in the output.
pub type Tables<'a> = TableSet<Table<'a>>;

impl Columns for Table<'_> {
    /// All its bytes; `None` where it is read-only.
    type Values<'t>
        = Option<SliceMut<'t, u8>>
    where
        Self: 't;

    fn dim(&self) -> usize {
        self.dim
    }

    fn values_mut(&mut self) -> Option<SliceMut<'_, u8>> {
        self.bytes_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice for which nothing is launched.
    fn memory(address: u64, len: usize) -> Slice<'static, u8> {
        // SAFETY: only its address and length are used.
        unsafe { Slice::from_raw(address, len) }
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let table = |address, len, shape, pitch| {
            Table::borrow("t", memory(address, len), shape, Element::F32, pitch).map(|_| ())
        };
        assert!(table(256, 1280, [10, 32], 128).is_ok());
        assert!(table(256, 1279, [10, 32], 128).is_err());
        assert!(table(258, 1280, [10, 32], 128).is_err());
        assert!(table(256, 1280, [0, 32], 128).is_err());
        assert!(table(256, 1280, [10, 0], 128).is_err());
        assert!(table(256, 1280, [10, 32], 124).is_err());
        let error = table(256, usize::MAX, [MOST_ROWS, 1], 4).unwrap_err().to_string();
        assert!(error.contains("32 bits"), "{error}");
    }

    #[test]
    fn the_alignment_is_that_of_address_and_pitch() {
        let align = |address, pitch| {
            Table::borrow("t", memory(address, 4000), [10, 9], Element::F32, pitch).unwrap().align()
        };
        assert_eq!(align(256, 48), 16);
        assert_eq!(align(256, 36), 4);
        assert_eq!(align(264, 48), 8);
    }
}
