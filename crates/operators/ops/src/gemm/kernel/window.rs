//! A rectangle of a matrix that one thread writes, next to those of other threads.

use std::marker::PhantomData;

use crate::gemm::MatMut;
use crate::shared::Shared;

/// A rectangle of the output. Rectangles of different threads are disjoint.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    start: *mut f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
    life: PhantomData<&'a mut [f32]>,
}

// SAFETY: a window is read and written by the thread that received it; callers of `part` promise that windows in use at
// the same time are disjoint.
unsafe impl Send for Window<'_> {}
// SAFETY: as above.
unsafe impl Sync for Window<'_> {}

impl<'a> Window<'a> {
    pub(crate) fn new(matrix: &'a mut MatMut<'_>) -> Window<'a> {
        Window {
            start: matrix.data.as_mut_ptr(),
            rows: matrix.rows,
            cols: matrix.cols,
            row_stride: matrix.row_stride,
            col_stride: matrix.col_stride,
            life: PhantomData,
        }
    }

    /// A rectangle from `start` on of a slice that threads share.
    ///
    /// # Safety
    ///
    /// No other window or range that is in use at the same time, on any thread, overlaps its elements, and no two of
    /// them share a place.
    ///
    /// # Panics
    ///
    /// It reaches past the end of the slice.
    pub(crate) unsafe fn over(
        slice: Shared<'a, f32>,
        start: usize,
        rows: usize,
        cols: usize,
        row_stride: usize,
        col_stride: usize,
    ) -> Window<'a> {
        if rows > 0 && cols > 0 {
            let last = start + (rows - 1) * row_stride + (cols - 1) * col_stride;
            assert!(last < slice.len(), "a window past the end of its slice");
        }
        let start = slice.address(start).cast_mut();
        Window { start, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Number of floats from a row to the next.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 alone"))]
    pub(super) fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// Number of floats from a column to the next.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "AVX-512 alone"))]
    pub(super) fn col_stride(&self) -> usize {
        self.col_stride
    }

    /// Whether rows are contiguous.
    pub(crate) fn has_rows(&self) -> bool {
        self.col_stride == 1 || self.cols <= 1
    }

    /// The rectangle `rows x cols` from (`row`, `col`) on.
    ///
    /// # Safety
    ///
    /// No other window that is in use at the same time, on any thread, overlaps this rectangle.
    ///
    /// # Panics
    ///
    /// It is not inside of this window.
    pub(crate) unsafe fn part(&self, row: usize, col: usize, rows: usize, cols: usize) -> Window<'a> {
        let inside = |from: usize, count, all| from.checked_add(count).is_some_and(|end| end <= all);
        assert!(inside(row, rows, self.rows) && inside(col, cols, self.cols), "a part outside of its window");
        // The span of a matrix without elements is not checked against its slice: its parts begin anywhere, and nothing
        // is read or written there.
        let down = row.wrapping_mul(self.row_stride);
        let start = self.start.wrapping_add(down.wrapping_add(col.wrapping_mul(self.col_stride)));
        Window { start, rows, cols, ..*self }
    }

    /// Returns the address of (`row`, `col`).
    pub(super) fn place(&self, row: usize, col: usize) -> *mut f32 {
        debug_assert!(row < self.rows && col < self.cols);
        self.start.wrapping_add(row * self.row_stride + col * self.col_stride)
    }

    /// Returns one row, where rows are contiguous.
    ///
    /// # Panics
    ///
    /// The row is outside of the window, or its elements are not next to each other.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows && self.has_rows(), "a row outside of its window");
        if self.cols == 0 {
            return &mut [];
        }
        // SAFETY: inside of the window, which only this thread holds.
        unsafe { std::slice::from_raw_parts_mut(self.place(row, 0), self.cols) }
    }

    /// Sets one element.
    ///
    /// # Panics
    ///
    /// It is outside of the window.
    pub(crate) fn set(&mut self, row: usize, col: usize, value: f32) {
        assert!(row < self.rows && col < self.cols, "an element outside of its window");
        // SAFETY: inside of the window, which only this thread holds.
        unsafe { self.place(row, col).write(value) };
    }

    /// Calls `work` with all elements of some rows, in slices.
    pub(crate) fn apply(&mut self, rows: std::ops::Range<usize>, work: impl Fn(&mut [f32])) {
        for row in rows {
            if self.has_rows() {
                work(self.row_mut(row));
                continue;
            }
            assert!(row < self.rows, "a row outside of its window");
            for col in 0..self.cols {
                // SAFETY: inside of the window, which only this thread holds.
                work(std::slice::from_mut(unsafe { &mut *self.place(row, col) }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_elements_begin_anywhere() {
        let mut none: [f32; 0] = [];
        for stride in [0, 1000, usize::MAX] {
            let mut matrix = MatMut::with_strides(&mut none, 300, 0, stride, 1).unwrap();
            let window = Window::new(&mut matrix);
            // SAFETY: windows without columns do not overlap.
            let mut part = unsafe { window.part(200, 0, 100, 0) };
            assert_eq!((part.rows(), part.cols()), (100, 0));
            assert!(part.row_mut(99).is_empty());
            part.apply(0..100, |row| assert!(row.is_empty()));
        }
    }

    #[test]
    #[should_panic(expected = "a part outside of its window")]
    fn parts_are_inside_of_their_window() {
        let mut data = [0.0; 12];
        let mut matrix = MatMut::new(&mut data, 3, 4).unwrap();
        let window = Window::new(&mut matrix);
        // SAFETY: it is the only one in use.
        let _ = unsafe { window.part(usize::MAX, 0, 2, 4) };
    }
}
