//! Tables in the device's memory.

use steptime_ops::embedding::{Element, EmbeddingError, Pooling};

use crate::{Buffer, Error, Slice, SliceMut, Stream};

/// A table of E rows and D columns on a device: its own, or in memory of others.
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

/// Most rows: the number after the last stands for a row that is not there.
const MOST_ROWS: usize = u32::MAX as usize;

impl<'a> Table<'a> {
    /// A table `[rows, dim]` over memory of the device, with rows `pitch` bytes apart, read only. The last row's
    /// padding belongs to it.
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

    /// As [`Table::borrow`], over memory that training changes.
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

    /// A table of its own over a buffer.
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

    /// A copy of a table of the host, with the same pitch.
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
                what: format!("table {name:?} of {element} at an address that is no multiple of {align}"),
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

    /// The name that messages use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// E.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// D.
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

    /// All its bytes, to be changed; `None` where it is read only.
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

    /// Bytes that every row's start is a multiple of, 16 at most.
    #[must_use]
    pub fn align(&self) -> usize {
        let of = |number: u64| 1_usize << number.trailing_zeros().min(4);
        of(self.slice().address()).min(of(self.pitch as u64))
    }
}

/// Tables with the pooling of each, side by side in the output.
#[derive(Debug)]
pub struct Tables<'a> {
    tables: Vec<Table<'a>>,
    pooling: Vec<Pooling>,
    columns: Vec<usize>,
}

impl<'a> Tables<'a> {
    /// Tables that all pool alike.
    #[must_use]
    pub fn new(tables: Vec<Table<'a>>, pooling: Pooling) -> Tables<'a> {
        let mut columns = vec![0];
        columns.extend(tables.iter().scan(0, |end, table| {
            *end += table.dim();
            Some(*end)
        }));
        Tables { pooling: vec![pooling; tables.len()], tables, columns }
    }

    /// Copies of the tables of the host.
    ///
    /// # Errors
    ///
    /// Not enough memory, or too many rows.
    pub fn upload(
        stream: &Stream,
        tables: &steptime_ops::embedding::Tables<'_>,
    ) -> Result<Tables<'static>, Error> {
        let copies = tables.iter().map(|table| Table::upload(stream, table)).collect::<Result<_, _>>()?;
        let mut copies = Tables::new(copies, Pooling::Sum);
        copies.pooling = (0..tables.len()).map(|table| tables.pooling(table)).collect();
        Ok(copies)
    }

    /// With another pooling for one table.
    ///
    /// # Errors
    ///
    /// There is no such table.
    pub fn with_pooling(mut self, table: usize, pooling: Pooling) -> Result<Tables<'a>, Error> {
        let tables = self.tables.len();
        *self.pooling.get_mut(table).ok_or(EmbeddingError::NoTable { table, tables })? = pooling;
        Ok(self)
    }

    /// T.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// A table.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn table(&self, table: usize) -> &Table<'a> {
        &self.tables[table]
    }

    /// A table, to be changed.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn table_mut(&mut self, table: usize) -> &mut Table<'a> {
        &mut self.tables[table]
    }

    /// All tables.
    pub fn iter(&self) -> std::slice::Iter<'_, Table<'a>> {
        self.tables.iter()
    }

    /// The pooling of a table.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn pooling(&self, table: usize) -> Pooling {
        self.pooling[table]
    }

    /// The column of the pooled output where a table begins.
    ///
    /// # Panics
    ///
    /// There is no such table.
    #[must_use]
    pub fn column(&self, table: usize) -> usize {
        self.columns[table]
    }

    /// Columns of the pooled output: the sum of all D.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns[self.tables.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice that nothing is launched on.
    fn memory(address: u64, len: usize) -> Slice<'static, u8> {
        // SAFETY: only its address and length are looked at.
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

    #[test]
    fn columns_lie_side_by_side() {
        let of = |dim| Table::borrow("t", memory(16, 4000), [2, dim], Element::F32, dim * 4).unwrap();
        let tables = Tables::new(vec![of(3), of(5)], Pooling::Sum).with_pooling(1, Pooling::Max).unwrap();
        assert_eq!((tables.column(0), tables.column(1), tables.columns()), (0, 3, 8));
        assert_eq!(tables.pooling(1), Pooling::Max);
        assert!(tables.with_pooling(2, Pooling::Sum).is_err());
    }
}
