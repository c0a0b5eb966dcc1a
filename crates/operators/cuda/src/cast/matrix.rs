//! The matrices of a cast: shapes, checks, and the structure that the kernel reads.

use bytemuck::{Pod, Zeroable};

use crate::embedding::span;
use crate::{Error, Float, Slice, SliceMut};

/// Rows and columns of a tile.
pub(super) const SIDE: usize = 64;

/// A matrix `[rows, columns]` and its copy: of the same shape, or `[columns, rows]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Rows and columns of the input.
    pub shape: [usize; 2],
    /// Elements from row to row of the input, and from row to row of the result. The elements between the rows of the
    /// result are not written.
    pub strides: [usize; 2],
    /// Whether columns of the input are rows of the result.
    pub transposed: bool,
}

/// Kernel argument for a matrix.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct Entry {
    from: u64,
    to: u64,
    from_stride: u64,
    to_stride: u64,
    rows: u32,
    columns: u32,
    first: u32,
    flags: u32,
}

/// The bits of an entry's flags.
const TRANSPOSED: u32 = 1;
const READS_FOUR: u32 = 2;
const WRITES_EIGHT: u32 = 4;

impl Matrix {
    /// A matrix without padding, whose copy has rows that begin at multiples of `multiple` elements: 8 for cuBLASLt.
    #[must_use]
    pub fn new([rows, columns]: [usize; 2], transposed: bool, multiple: usize) -> Matrix {
        let columns_of_copy = if transposed { rows } else { columns };
        let stride = columns_of_copy.next_multiple_of(multiple.max(1));
        Matrix { shape: [rows, columns], strides: [columns, stride], transposed }
    }

    /// Rows and columns of the result.
    fn result(&self) -> [usize; 2] {
        let [rows, columns] = self.shape;
        if self.transposed { [columns, rows] } else { [rows, columns] }
    }

    /// Number of elements that input and result span.
    #[must_use]
    pub fn lengths(&self) -> [usize; 2] {
        let [from, to] = [self.shape, self.result()];
        [span(from[0], from[1], self.strides[0]), span(to[0], to[1], self.strides[1])]
    }

    /// Number of tiles.
    pub(super) fn tiles(&self) -> usize {
        let [rows, columns] = self.shape;
        rows.div_ceil(SIDE).saturating_mul(columns.div_ceil(SIDE))
    }

    /// Fails where rows overlap, or are too many or too long.
    pub(super) fn check(&self) -> Result<(), Error> {
        let fits = |[_, columns]: [usize; 2], stride: usize| stride >= columns;
        let counts = self.shape.into_iter().all(|size| i32::try_from(size).is_ok());
        if counts && fits(self.shape, self.strides[0]) && fits(self.result(), self.strides[1]) {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: format!("a cast of {self:?}"),
            remedy: "give fewer than 2^31 rows and columns, and rows at least as far apart as they are long",
        })
    }

    /// The entry of this matrix, whose first tile has this number.
    ///
    /// # Errors
    ///
    /// An input or a result that is too short.
    pub(super) fn entry<T: Float, D: Float>(
        &self,
        first: u32,
        from: Slice<'_, T>,
        to: &SliceMut<'_, D>,
    ) -> Result<Entry, Error> {
        let lengths = [from.len(), to.len()].into_iter().zip(self.lengths());
        for ((found, needed), what) in lengths.zip(["the input of a cast", "the result of a cast"]) {
            if found < needed {
                return Err(Error::Size { what, found, needed });
            }
        }
        let aligned = |address: u64, stride: usize, bytes: usize, align: usize| {
            address.is_multiple_of(align as u64) && (stride * bytes).is_multiple_of(align)
        };
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let [from_bytes, to_bytes] = [size_of::<T>(), size_of::<D>()];
        let flags = flag(self.transposed, TRANSPOSED)
            | flag(aligned(from.address(), self.strides[0], from_bytes, 4 * from_bytes), READS_FOUR)
            | flag(aligned(to.address(), self.strides[1], to_bytes, 16), WRITES_EIGHT);
        Ok(Entry {
            from: from.address(),
            to: to.address(),
            from_stride: self.strides[0] as u64,
            to_stride: self.strides[1] as u64,
            rows: self.shape[0] as u32,
            columns: self.shape[1] as u32,
            first,
            flags,
        })
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn copies_have_padded_rows() {
        let matrix = Matrix::new([479, 13], true, 8);
        assert_eq!((matrix.strides, matrix.lengths()), ([13, 480], [479 * 13, 12 * 480 + 479]));
        let matrix = Matrix::new([479, 13], false, 8);
        assert_eq!((matrix.strides, matrix.tiles()), ([13, 16], 8));
        assert!(matrix.check().is_ok());
        for strides in [[12, 16], [13, 12]] {
            let error = Matrix { strides, ..matrix }.check().unwrap_err().to_string();
            assert!(error.contains("as far apart"), "{error}");
        }
        assert_eq!(Matrix::new([0, 5], false, 8).tiles(), 0);
    }

    #[test]
    fn vectors_are_those_that_addresses_and_strides_allow() {
        let flags = |from: u64, to: u64, matrix: Matrix| {
            // SAFETY: nothing is launched.
            let (from, to) =
                unsafe { (Slice::<f32>::from_raw(from, 9999), SliceMut::<bf16>::from_raw(to, 9999)) };
            matrix.entry(0, from, &to).unwrap().flags
        };
        let matrix = Matrix::new([10, 12], false, 8);
        assert_eq!(flags(256, 256, matrix), READS_FOUR | WRITES_EIGHT);
        assert_eq!(flags(256, 264, matrix), READS_FOUR);
        assert_eq!(flags(260, 256, matrix), WRITES_EIGHT);
        assert_eq!(flags(256, 256, Matrix::new([10, 13], true, 8)), TRANSPOSED | WRITES_EIGHT);
        assert_eq!(flags(256, 256, Matrix::new([10, 12], true, 1)), TRANSPOSED | READS_FOUR);
    }
}
