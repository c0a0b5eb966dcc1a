//! Image pixels under the taps.

use std::ops::Range;

use crate::convolution::patches::Patches;

impl Patches<'_> {
    /// Returns the row of the image under a row of taps, for a row of the grid.
    pub(super) fn image_row(&self, row: usize, tap: usize) -> Option<usize> {
        let seen = (row * self.step[0]) as isize + self.taps[0][tap];
        usize::try_from(seen).ok().filter(|&seen| seen < self.image[0])
    }

    /// Columns of the grid for which a column of taps is inside of the image.
    pub(super) fn columns(&self, tap: usize) -> Range<usize> {
        let (step, from, cols) = (self.step[1], self.taps[1][tap], self.grid.size[2]);
        let until = |pixel: isize| usize::try_from(pixel).unwrap_or(0).div_ceil(step).min(cols);
        let before = until(-from);
        before..until(self.image[1] as isize - from).max(before)
    }

    /// Columns of the grid for which all columns of taps are inside of the image.
    pub(super) fn inner_columns(&self) -> Range<usize> {
        let all = (0..self.taps[1].len()).map(|tap| self.columns(tap));
        let inner =
            all.fold(0..self.grid.size[2], |inner, of| inner.start.max(of.start)..inner.end.min(of.end));
        inner.start..inner.end.max(inner.start)
    }

    /// Number of taps of a row, and of all rows.
    pub(super) fn counts(&self) -> [usize; 2] {
        [self.taps[1].len(), self.taps[0].len() * self.taps[1].len()]
    }

    /// Whether the data holds all images, and the first `channels` channels of each.
    pub(super) fn holds(&self, channels: usize) -> bool {
        let [images, ..] = self.grid.size;
        let [rows, cols] = self.image;
        let strides = self.strides;
        let last =
            [(images, strides.outer), (channels, strides.channel), (rows, strides.row), (cols, strides.col)];
        let none = last.iter().any(|&(count, _)| count == 0);
        none || last.iter().map(|&(count, stride)| (count - 1) * stride).sum::<usize>() < self.data.len()
    }
}
