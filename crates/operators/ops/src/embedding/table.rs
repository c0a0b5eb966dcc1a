//! One table: E rows of D columns.

use std::fs::File;
use std::path::Path;

use super::storage::Storage;
use super::{Element, EmbeddingError, HugeBuffer, Plain, TableSet};

/// A table of E rows and D columns, borrowed, owned in huge pages, or mapped from a file that may exceed memory.
///
/// Sizes are counted in `usize`: tables of more than 2^31 elements are ordinary.
#[derive(Debug)]
pub struct Table<'a> {
    name: String,
    rows: usize,
    dim: usize,
    element: Element,
    pitch: usize,
    pub(super) storage: Storage<'a>,
}

/// Host tables with the pooling of each, whose columns are adjacent in the output.
pub type Tables<'a> = TableSet<Table<'a>>;

impl<'a> Table<'a> {
    /// A read-only table over consecutive rows.
    ///
    /// # Errors
    ///
    /// No rows, no columns, or a size that is not a multiple of the columns.
    pub fn borrow<T: Plain>(name: &str, values: &'a [T], dim: usize) -> Result<Self, EmbeddingError> {
        let rows = values.len().checked_div(dim).unwrap_or(0);
        let bytes = bytemuck::cast_slice(values);
        let table =
            Table::borrow_bytes(name, bytes, [rows, dim], T::ELEMENT, dim.saturating_mul(size_of::<T>()))?;
        table.whole()
    }

    /// A table over consecutive rows, which training changes in place.
    ///
    /// # Errors
    ///
    /// No rows, no columns, or a size that is not a multiple of the columns.
    pub fn borrow_mut<T: Plain>(name: &str, values: &'a mut [T], dim: usize) -> Result<Self, EmbeddingError> {
        let rows = values.len().checked_div(dim).unwrap_or(0);
        let storage = Storage::BorrowedMut(bytemuck::cast_slice_mut(values));
        Table::new(name, [rows, dim], T::ELEMENT, dim.saturating_mul(size_of::<T>()), storage)?.whole()
    }

    /// A read-only table over bytes, `[rows, dim]`, with rows `pitch` bytes apart.
    ///
    /// # Errors
    ///
    /// A shape, pitch and storage that do not fit each other.
    pub fn borrow_bytes(
        name: &str,
        bytes: &'a [u8],
        shape: [usize; 2],
        element: Element,
        pitch: usize,
    ) -> Result<Self, EmbeddingError> {
        Table::new(name, shape, element, pitch, Storage::Borrowed(bytes))
    }

    /// A table over bytes, `[rows, dim]`, with rows `pitch` bytes apart, which training changes in place.
    ///
    /// # Errors
    ///
    /// A shape, pitch and storage that do not fit each other.
    pub fn borrow_bytes_mut(
        name: &str,
        bytes: &'a mut [u8],
        shape: [usize; 2],
        element: Element,
        pitch: usize,
    ) -> Result<Self, EmbeddingError> {
        Table::new(name, shape, element, pitch, Storage::BorrowedMut(bytes))
    }

    /// A table `[rows, dim]` of zeros that owns its memory, in huge pages, with rows [`Element::pitch`] apart.
    ///
    /// # Errors
    ///
    /// An invalid shape, or not enough memory.
    pub fn zeros(name: &str, shape: [usize; 2], element: Element) -> Result<Table<'static>, EmbeddingError> {
        let (pitch, needed) = Table::size(name, shape, element)?;
        let buffer = HugeBuffer::zeroed(needed).map_err(|source| {
            let what = format!("{needed} bytes of memory");
            EmbeddingError::System { table: name.into(), what, source }
        })?;
        Table::new(name, shape, element, pitch, Storage::Owned(buffer))
    }

    /// A table `[rows, dim]` in a file, from byte `offset` on (a multiple of 64), with rows [`Element::pitch`] apart.
    /// The file may exceed memory. With `write`, training changes the file.
    ///
    /// # Safety
    ///
    /// Nothing else writes or shortens the file as long as the table lives.
    ///
    /// # Errors
    ///
    /// An invalid shape, or a file that cannot be opened, is too short, or cannot be mapped.
    pub unsafe fn map(
        name: &str,
        path: &Path,
        offset: u64,
        shape: [usize; 2],
        element: Element,
        write: bool,
    ) -> Result<Table<'static>, EmbeddingError> {
        let (pitch, needed) = Table::size(name, shape, element)?;
        let wrong = |source| {
            let what = format!("{needed} bytes from {offset} of {}", path.display());
            EmbeddingError::System { table: name.into(), what, source }
        };
        if !offset.is_multiple_of(64) {
            return Err(wrong(std::io::Error::other("the offset must be a multiple of 64")));
        }
        let file = File::options().read(true).write(write).open(path).map_err(wrong)?;
        // SAFETY: nothing else changes the file, by the caller's promise.
        let storage = unsafe { Storage::map(&file, offset, needed, write) }.map_err(wrong)?;
        Table::new(name, shape, element, pitch, storage)
    }

    /// Pitch and bytes of a table of this shape.
    fn size(name: &str, shape: [usize; 2], element: Element) -> Result<(usize, usize), EmbeddingError> {
        let [rows, dim] = shape;
        let wrong = || EmbeddingError::Shape { table: name.into(), rows, dim, element };
        if rows == 0 || dim == 0 || dim > isize::MAX as usize / 8 {
            return Err(wrong());
        }
        let pitch = element.pitch(dim);
        let bytes = rows.checked_mul(pitch).filter(|&bytes| isize::try_from(bytes).is_ok());
        Ok((pitch, bytes.ok_or_else(wrong)?))
    }

    fn new(
        name: &str,
        [rows, dim]: [usize; 2],
        element: Element,
        pitch: usize,
        storage: Storage<'a>,
    ) -> Result<Table<'a>, EmbeddingError> {
        let table = || name.to_owned();
        if rows == 0 || dim == 0 || dim > isize::MAX as usize / 8 {
            return Err(EmbeddingError::Shape { table: table(), rows, dim, element });
        }
        let (bytes, align) = (element.row_bytes(dim), element.align());
        if pitch < bytes || !pitch.is_multiple_of(align) {
            return Err(EmbeddingError::Pitch { table: table(), pitch, dim, bytes, element, align });
        }
        let found = storage.bytes().len();
        let needed = (rows - 1).checked_mul(pitch).and_then(|before| before.checked_add(bytes));
        let needed = needed.ok_or_else(|| EmbeddingError::Shape { table: table(), rows, dim, element })?;
        if found < needed {
            return Err(EmbeddingError::Storage { table: table(), rows, pitch, found, needed });
        }
        Ok(Table { name: table(), rows, dim, element, pitch, storage })
    }

    /// Returns the table, or fails if bytes are left over after the last row.
    fn whole(self) -> Result<Table<'a>, EmbeddingError> {
        let (found, needed) = (self.storage.bytes().len(), self.rows * self.pitch);
        if found == needed {
            return Ok(self);
        }
        Err(EmbeddingError::Storage { table: self.name, rows: self.rows, pitch: self.pitch, found, needed })
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

    /// Bytes of one row, without padding.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.element.row_bytes(self.dim)
    }

    /// All its bytes: row `r` starts at `r * pitch`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// The bytes of one row.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.bytes()[row * self.pitch..][..self.element.row_bytes(self.dim)]
    }

    /// The bytes of one row, for writing; `None` where the table is read-only.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> Option<&mut [u8]> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let (start, bytes) = (row * self.pitch, self.row_bytes());
        Some(&mut self.storage.bytes_mut()?[start..][..bytes])
    }
}
