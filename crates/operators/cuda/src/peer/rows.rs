//! Rows of bytes in a GPU's memory, and copies of them.

use std::ops::Range;
use std::ptr;

use cudarc::driver::sys;

use crate::{Error, Stream};

/// Rows of bytes at equal distances in a GPU's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Address of the first byte.
    pub address: u64,
    /// Number of rows.
    pub rows: usize,
    /// Bytes of a row.
    pub bytes: usize,
    /// Bytes from one row to the next.
    pub pitch: usize,
}

impl Rows {
    /// Number of bytes of all rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows * self.bytes
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same bytes as a number of rows; `None` where they do not divide into as many, or have gaps.
    #[must_use]
    pub fn as_rows(&self, rows: usize) -> Option<Rows> {
        if self.rows == rows {
            return Some(*self);
        }
        let is_dense = self.rows == 1 || self.pitch == self.bytes;
        let divides = rows > 0 && self.len().is_multiple_of(rows);
        let bytes = self.len() / rows.max(1);
        (is_dense && divides).then_some(Rows { rows, bytes, pitch: bytes, ..*self })
    }

    /// Columns of bytes of each row.
    #[must_use]
    pub fn columns(&self, start: usize, bytes: usize) -> Rows {
        Rows { address: self.address + start as u64, bytes, ..*self }
    }

    /// Some of the rows.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Rows {
        Rows { address: self.address + (rows.start * self.pitch) as u64, rows: rows.len(), ..*self }
    }

    /// Copies of the columns of some matrices to those of others, both in order: where one of them ends, a copy ends. `None` where the columns of both
    /// are not as many, or their numbers of rows differ.
    #[must_use]
    pub fn pairs(from: &[Rows], to: &[Rows]) -> Option<Vec<[Rows; 2]>> {
        let rows = from.iter().chain(to).map(|one| one.rows).max().unwrap_or(0);
        let same = |all: &[Rows]| all.iter().map(|one| one.as_rows(rows)).collect::<Option<Vec<_>>>();
        let (from, to) = (same(from)?, same(to)?);
        let width = |all: &[Rows]| all.iter().map(|one| one.bytes).sum::<usize>();
        if width(&from) != width(&to) {
            return None;
        }
        let (mut pairs, mut left, mut right) = (Vec::new(), from.into_iter(), to.into_iter());
        let (mut source, mut target) = (left.next(), right.next());
        while let (Some(one), Some(other)) = (source, target) {
            let bytes = one.bytes.min(other.bytes);
            if bytes > 0 {
                pairs.push([one.columns(0, bytes), other.columns(0, bytes)]);
            }
            let rest = |all: Rows| (all.bytes > bytes).then(|| all.columns(bytes, all.bytes - bytes));
            source = rest(one).or_else(|| left.next());
            target = rest(other).or_else(|| right.next());
        }
        Some(pairs)
    }

    /// Copies the rows to others, on this GPU or another one whose memory it reaches.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// # Safety
    ///
    /// `to` has as many rows, at least as long. The memory of both lives until the stream has passed the copy, and other uses of it are ordered by the
    /// caller.
    pub(super) unsafe fn copy(&self, stream: &Stream, to: &Rows) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        stream.device().bind()?;
        let unified = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: unified,
            srcHost: ptr::null(),
            srcDevice: self.address,
            srcArray: ptr::null_mut(),
            srcPitch: self.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: unified,
            dstHost: ptr::null_mut(),
            dstDevice: to.address,
            dstArray: ptr::null_mut(),
            dstPitch: to.pitch,
            WidthInBytes: self.bytes,
            Height: self.rows,
        };
        // SAFETY: by the caller.
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.raw()) }
            .result()
            .map_err(Error::driver("copying rows between GPUs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(address: u64, rows: usize, bytes: usize, pitch: usize) -> Rows {
        Rows { address, rows, bytes, pitch }
    }

    #[test]
    fn copies_end_where_columns_end() {
        let from = [rows(0, 4, 6, 6)];
        let to = [rows(100, 4, 2, 10), rows(200, 4, 4, 20)];
        let pairs = Rows::pairs(&from, &to).expect("pairs");
        assert_eq!(pairs, [[rows(0, 4, 2, 6), rows(100, 4, 2, 10)], [rows(2, 4, 4, 6), rows(200, 4, 4, 20)]]);
        let back = Rows::pairs(&to, &from).expect("pairs");
        let turned: Vec<_> = pairs.into_iter().map(|[from, to]| [to, from]).collect();
        assert_eq!(back, turned);
    }

    #[test]
    fn bytes_without_gaps_have_any_number_of_rows() {
        let flat = rows(0, 1, 24, 24);
        let to = [rows(100, 4, 6, 10)];
        assert_eq!(Rows::pairs(&[flat], &to), Some(vec![[rows(0, 4, 6, 6), to[0]]]));
        assert_eq!(Rows::pairs(&[rows(0, 1, 23, 23)], &to), None);
        assert_eq!(Rows::pairs(&[rows(0, 2, 12, 13)], &to), None);
        assert_eq!(Rows::pairs(&[], &[]), Some(Vec::new()));
    }
}
