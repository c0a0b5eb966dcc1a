//! Matrices as operands of products: a slice, a shape, and two strides.

use half::{bf16, f16};

use super::GemmError;

/// A number type of operands; products always sum in `f32`.
pub trait Element: Copy + Send + Sync + 'static {
    /// Converts to `f32`.
    fn to_f32(self) -> f32;

    /// Returns the slice itself if its elements are `f32`, which avoids a conversion.
    fn as_f32(_slice: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Element for f32 {
    fn to_f32(self) -> f32 {
        self
    }

    fn as_f32(slice: &[f32]) -> Option<&[f32]> {
        Some(slice)
    }
}

impl Element for bf16 {
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
}

impl Element for f16 {
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
}

/// A matrix for reading, `[rows, cols]`: element (i, j) is at `i * row_stride + j * col_stride` of the slice.
#[derive(Debug, Clone, Copy)]
pub struct MatRef<'a, T = f32> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T: Copy> MatRef<'a, T> {
    /// A matrix of consecutive rows.
    ///
    /// # Errors
    ///
    /// The slice is shorter than `rows * cols`.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Result<MatRef<'a, T>, GemmError> {
        MatRef::with_strides(data, rows, cols, cols, 1)
    }

    /// A matrix with any strides, counted in elements; a stride of 0 repeats a row or a column.
    ///
    /// # Errors
    ///
    /// The view reaches past the end of the slice.
    pub fn with_strides(
        data: &'a [T],
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<MatRef<'a, T>, GemmError> {
        check_span(data.len(), rows, cols, row_stride, col_stride)?;
        Ok(MatRef { data, rows, cols, row_stride, col_stride })
    }

    /// The transpose: the same elements, strides exchanged.
    #[must_use]
    pub fn t(self) -> MatRef<'a, T> {
        MatRef {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of elements from a row to the next.
    #[must_use]
    pub fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// Number of elements from a column to the next.
    #[must_use]
    pub fn col_stride(&self) -> usize {
        self.col_stride
    }

    /// Returns element (`row`, `col`).
    ///
    /// # Panics
    ///
    /// It is outside of the matrix.
    #[must_use]
    pub fn at(&self, row: usize, col: usize) -> T {
        assert!(
            row < self.rows && col < self.cols,
            "({row}, {col}) of a {} x {} matrix",
            self.rows,
            self.cols
        );
        self.data[row * self.row_stride + col * self.col_stride]
    }

    /// All elements from (`row`, `col`) to the end of the slice.
    pub(crate) fn tail(&self, row: usize, col: usize) -> &'a [T] {
        self.data.get(row * self.row_stride + col * self.col_stride..).unwrap_or(&[])
    }

    /// Row `row`, columns `from..from + len`, where a row is contiguous.
    pub(crate) fn row_part(&self, row: usize, from: usize, len: usize) -> &'a [T] {
        debug_assert!(self.col_stride == 1 || len <= 1);
        &self.tail(row, from)[..len]
    }

    pub(crate) fn expect(&self, what: &'static str, rows: usize, cols: usize) -> Result<(), GemmError> {
        expect_shape(what, (self.rows, self.cols), (rows, cols))
    }
}

/// A matrix for writing, `[rows, cols]`, whose elements do not share places.
#[derive(Debug)]
pub struct MatMut<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl<'a> MatMut<'a> {
    /// A matrix of consecutive rows.
    ///
    /// # Errors
    ///
    /// The slice is shorter than `rows * cols`.
    pub fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Result<MatMut<'a>, GemmError> {
        MatMut::with_strides(data, rows, cols, cols, 1)
    }

    /// A matrix with any strides that keep the elements apart.
    ///
    /// # Errors
    ///
    /// The view reaches past the end of the slice, or two elements share a place.
    pub fn with_strides(
        data: &'a mut [f32],
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Result<MatMut<'a>, GemmError> {
        check_span(data.len(), rows, cols, row_stride, col_stride)?;
        let apart = |rows: usize, cols: usize, row_stride: usize, col_stride: usize| {
            (rows <= 1 || row_stride > (cols - 1) * col_stride) && (cols <= 1 || col_stride > 0)
        };
        let empty = rows == 0 || cols == 0;
        if empty || apart(rows, cols, row_stride, col_stride) || apart(cols, rows, col_stride, row_stride) {
            Ok(MatMut { data, rows, cols, row_stride, col_stride })
        } else {
            Err(GemmError::Overlap { rows, cols, row_stride, col_stride })
        }
    }

    /// The transpose: the same elements, strides exchanged.
    #[must_use]
    pub fn t(self) -> MatMut<'a> {
        MatMut {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns element (`row`, `col`).
    ///
    /// # Panics
    ///
    /// It is outside of the matrix.
    pub fn at(&mut self, row: usize, col: usize) -> &mut f32 {
        assert!(
            row < self.rows && col < self.cols,
            "({row}, {col}) of a {} x {} matrix",
            self.rows,
            self.cols
        );
        &mut self.data[row * self.row_stride + col * self.col_stride]
    }

    /// The same matrix for a shorter lifetime.
    pub fn reborrow(&mut self) -> MatMut<'_> {
        MatMut {
            data: self.data,
            rows: self.rows,
            cols: self.cols,
            row_stride: self.row_stride,
            col_stride: self.col_stride,
        }
    }

    pub(crate) fn expect(&self, what: &'static str, rows: usize, cols: usize) -> Result<(), GemmError> {
        expect_shape(what, (self.rows, self.cols), (rows, cols))
    }
}

fn check_span(
    len: usize,
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
) -> Result<(), GemmError> {
    let span = || {
        if rows == 0 || cols == 0 {
            return Some(0);
        }
        let down = (rows - 1).checked_mul(row_stride)?;
        let across = (cols - 1).checked_mul(col_stride)?;
        down.checked_add(across)?.checked_add(1)
    };
    let needed = span().unwrap_or(usize::MAX);
    if needed <= len {
        Ok(())
    } else {
        Err(GemmError::TooShort { rows, cols, row_stride, col_stride, needed, len })
    }
}

fn expect_shape(
    what: &'static str,
    found: (usize, usize),
    expected: (usize, usize),
) -> Result<(), GemmError> {
    if found == expected {
        return Ok(());
    }
    let ((found_rows, found_cols), (rows, cols)) = (found, expected);
    Err(GemmError::Shape { what, found_rows, found_cols, rows, cols })
}
