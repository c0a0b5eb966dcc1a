//! The pixels that a product computes, and their places in memory.

use super::layout::Strides;

/// A grid of pixels of all images. Pixels are counted image by image, row by row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    /// Images, rows, columns.
    pub(super) size: [usize; 3],
}

impl Grid {
    /// Number of pixels.
    pub(super) fn count(&self) -> usize {
        self.size.iter().product()
    }

    /// Image, row and column of a pixel.
    pub(super) fn at(&self, pixel: usize) -> [usize; 3] {
        let [_, rows, cols] = self.size;
        let (line, col) = (pixel / cols, pixel % cols);
        [line / rows, line % rows, col]
    }
}

/// Places of a grid's pixels in a tensor: those of a part of its image, some rows and columns apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) grid: Grid,
    /// Index of the first pixel's first channel.
    pub(super) start: usize,
    /// Elements from one (image, channel, row, column) of the grid to the next.
    pub(super) strides: Strides,
}

impl Places {
    /// Index of a pixel's first channel.
    pub(super) fn offset(&self, pixel: usize) -> usize {
        let [image, row, col] = self.grid.at(pixel);
        self.start + image * self.strides.outer + row * self.strides.row + col * self.strides.col
    }

    /// Whether these `count` pixels, at least one, are `strides.col` apart.
    pub(super) fn is_even(&self, pixel: usize, count: usize) -> bool {
        let [_, rows, cols] = self.grid.size;
        let [first, last] = [pixel, pixel + count - 1].map(|pixel| self.grid.at(pixel));
        let lines = self.strides.row == cols * self.strides.col;
        let images = lines && self.strides.outer == rows * self.strides.row;
        first[..2] == last[..2] || (lines && first[0] == last[0]) || images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_even_where_their_places_are() {
        for size in [[3, 2, 1], [2, 3, 4], [1, 1, 7], [3, 1, 2]] {
            for (outer, row, col) in [(24, 8, 2), (12, 4, 1), (6, 4, 3), (2, 1, 1), (14, 7, 1)] {
                let strides = Strides { outer, channel: 1, row, col };
                let places = Places { grid: Grid { size }, start: 5, strides };
                let all: Vec<_> = (0..places.grid.count()).map(|pixel| places.offset(pixel)).collect();
                for from in 0..all.len() {
                    for to in from + 1..=all.len() {
                        let even = all[from..to].windows(2).all(|pair| pair[1] == pair[0] + col);
                        // In a grid of one column or row, some pixels are evenly spaced although the function returns
                        // false.
                        assert!(
                            even || !places.is_even(from, to - from),
                            "{size:?} {strides:?} {from}..{to}"
                        );
                    }
                }
            }
        }
    }
}
