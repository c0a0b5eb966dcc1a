//! All operands as rows and columns, and blocks of them as slices.

use steptime_tensor::{JoinedLayouts, Layout};

/// Elements of a block, 8 KiB: large compared with the cost of starting a step, and small enough that a chain's
/// registers and operands fit the first-level cache.
pub(super) const BLOCK: usize = 2048;

/// The common shape with as few dimensions as strides allow, at least two; and each operand's strides.
#[derive(Debug)]
pub(super) struct Frame {
    shape: Vec<usize>,
    strides: Vec<Vec<usize>>,
    offsets: Vec<usize>,
    /// Number of rows of a block: 1 where a row is longer than a block.
    rows: usize,
    /// Number of columns of a block.
    columns: usize,
}

/// A block of an operand: `rows x columns` elements from `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

impl Place {
    pub(super) fn len(&self) -> usize {
        self.rows * self.columns
    }

    /// Whether the elements are neighbours in order.
    pub(super) fn is_run(&self) -> bool {
        (self.columns == 1 || self.column_stride == 1) && (self.rows == 1 || self.row_stride == self.columns)
    }

    /// Whether all elements are the same one.
    pub(super) fn is_single(&self) -> bool {
        (self.columns == 1 || self.column_stride == 0) && (self.rows == 1 || self.row_stride == 0)
    }

    /// Copies the elements in order.
    pub(super) fn gather(&self, from: &[f32], to: &mut [f32]) {
        for (row, to) in to.chunks_exact_mut(self.columns).take(self.rows).enumerate() {
            let start = self.start + row * self.row_stride;
            match self.column_stride {
                _ if self.columns == 1 => to[0] = from[start],
                0 => to.fill(from[start]),
                1 => to.copy_from_slice(&from[start..start + self.columns]),
                stride => {
                    to.iter_mut()
                        .zip(from[start..].iter().step_by(stride))
                        .for_each(|(to, &from)| *to = from);
                }
            }
        }
    }
}

impl Frame {
    /// A frame for layouts of one shape, none of them empty.
    pub(super) fn new(layouts: &[Layout]) -> Frame {
        let JoinedLayouts { mut shape, mut strides } = JoinedLayouts::new(layouts);
        while shape.len() < 2 {
            shape.insert(0, 1);
            strides.iter_mut().for_each(|strides| strides.insert(0, 0));
        }
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let columns = columns.min(BLOCK);
        let rows = if shape[shape.len() - 1] > BLOCK { 1 } else { rows.min(BLOCK / columns) };
        let offsets = layouts.iter().map(Layout::offset).collect();
        Frame { shape, strides, offsets, rows, columns }
    }

    /// Number of blocks along rows and along columns.
    fn grid(&self) -> (usize, usize) {
        let inner = &self.shape[self.shape.len() - 2..];
        (inner[0].div_ceil(self.rows), inner[1].div_ceil(self.columns))
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        let (rows, columns) = self.grid();
        self.shape[..self.shape.len() - 2].iter().product::<usize>() * rows * columns
    }

    /// A block of an operand.
    pub(super) fn place(&self, block: usize, operand: usize) -> Place {
        let (grid_rows, grid_columns) = self.grid();
        let (strides, rank) = (&self.strides[operand], self.shape.len());
        let (row, column) =
            (block / grid_columns % grid_rows * self.rows, block % grid_columns * self.columns);
        let mut start = self.offsets[operand] + row * strides[rank - 2] + column * strides[rank - 1];
        let mut outer = block / grid_columns / grid_rows;
        for axis in (0..rank - 2).rev() {
            start += outer % self.shape[axis] * strides[axis];
            outer /= self.shape[axis];
        }
        Place {
            start,
            rows: self.rows.min(self.shape[rank - 2] - row),
            columns: self.columns.min(self.shape[rank - 1] - column),
            row_stride: strides[rank - 2],
            column_stride: strides[rank - 1],
        }
    }
}
