//! The elements of a layout as runs of neighbours in memory.

use std::ops::Range;

use crate::Layout;

/// Positions of a layout's elements, in order, as ranges of neighbours: the longest runs that all have one length.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Sizes and strides of the dimensions outside of a run.
    outer: Vec<(usize, usize)>,
    index: Vec<usize>,
    at: usize,
    left: usize,
    length: usize,
}

impl Layout {
    /// The elements in order, as runs of neighbours.
    #[must_use]
    pub fn runs(&self) -> Runs {
        let mut rank = self.rank();
        let mut length = 1;
        while rank > 0 && (self.shape()[rank - 1] == 1 || self.strides()[rank - 1] == length) {
            length *= self.shape()[rank - 1];
            rank -= 1;
        }
        let outer: Vec<_> =
            self.shape()[..rank].iter().copied().zip(self.strides()[..rank].iter().copied()).collect();
        let left = if self.is_empty() { 0 } else { outer.iter().map(|&(size, _)| size).product() };
        Runs { index: vec![0; outer.len()], outer, at: self.offset(), left, length }
    }
}

impl Runs {
    /// Elements of each run.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Iterator for Runs {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.left = self.left.checked_sub(1)?;
        let run = self.at..self.at + self.length;
        if self.left > 0 {
            for (index, &(size, stride)) in self.index.iter_mut().zip(&self.outer).rev() {
                *index += 1;
                if *index < size {
                    self.at += stride;
                    break;
                }
                *index = 0;
                self.at -= (size - 1) * stride;
            }
        }
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Runs {}
