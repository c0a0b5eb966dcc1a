//! Tables in the host's memory.

use steptime_ops::embedding::Element;

use crate::{Device, Error, Pinned};

/// A table of E rows and D columns in pinned host memory, for copies from and to the device.
#[derive(Debug)]
pub struct HostTable {
    name: String,
    rows: usize,
    dim: usize,
    element: Element,
    pitch: usize,
    bytes: Pinned<u8>,
}

impl HostTable {
    /// A table of zeros, with the pitch of the CPU's tables.
    ///
    /// # Errors
    ///
    /// The system cannot pin that much memory.
    pub fn zeros(
        device: &Device,
        name: &str,
        [rows, dim]: [usize; 2],
        element: Element,
    ) -> Result<HostTable, Error> {
        let pitch = element.pitch(dim);
        let bytes = Pinned::zeros(device, rows.saturating_mul(pitch))?;
        Ok(HostTable { name: name.to_owned(), rows, dim, element, pitch, bytes })
    }

    /// A copy of a table, with its pitch.
    ///
    /// # Errors
    ///
    /// The system cannot pin that much memory.
    pub fn copy_of(device: &Device, table: &steptime_ops::embedding::Table<'_>) -> Result<HostTable, Error> {
        let (rows, dim, element, pitch) = (table.rows(), table.dim(), table.element(), table.pitch());
        let mut bytes = Pinned::zeros(device, rows * pitch)?;
        let used = (rows - 1) * pitch + table.row_bytes();
        bytes[..used].copy_from_slice(&table.bytes()[..used]);
        Ok(HostTable { name: table.name().to_owned(), rows, dim, element, pitch, bytes })
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

    /// The bytes of a row, without padding.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.pitch..][..self.element.row_bytes(self.dim)]
    }

    /// The mutable bytes of a row, without padding.
    ///
    /// # Panics
    ///
    /// The row does not exist.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        let bytes = self.element.row_bytes(self.dim);
        &mut self.bytes[row * self.pitch..][..bytes]
    }

    pub(super) fn bytes(&self) -> &Pinned<u8> {
        &self.bytes
    }
}
