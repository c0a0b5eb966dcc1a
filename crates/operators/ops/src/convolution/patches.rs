//! The patches of an image: for each pixel of a grid the pixels under the taps, channel by channel.
//!
//! A block of the matrix of patches has some pixels and some terms. Its innermost dimension is that of the image, so it
//! is filled by copies: runs of a row of pixels, `block[term][pixel]`, or the channels of a pixel,
//! `block[pixel][term]`.

use std::ops::Range;

use super::layout::Strides;
use super::pixels::Grid;

/// The patches of a grid of pixels. Terms are numbered with the image's innermost dimension innermost: (channel, tap
/// row, tap column), or (tap row, tap column, channel).
#[derive(Debug)]
pub(super) struct Patches<'a> {
    pub(super) data: &'a [f32],
    pub(super) strides: Strides,
    /// Whether channels are innermost.
    pub(super) last: bool,
    /// Number of rows and columns of the image. Pixels outside of it count as 0.
    pub(super) image: [usize; 2],
    /// Number of channels of a pixel's group.
    pub(super) channels: usize,
    pub(super) grid: Grid,
    /// Pixels of the image from one pixel of the grid to the next.
    pub(super) step: [usize; 2],
    /// Pixels of the image from a pixel of the grid to each row of taps, and to each column.
    pub(super) taps: [Vec<isize>; 2],
    /// Whether one more term, behind the last, is 1 for all pixels.
    pub(super) ones: bool,
}

impl Patches<'_> {
    /// Number of terms of a pixel, without the extra term of ones.
    pub(super) fn terms(&self) -> usize {
        self.channels * self.taps[0].len() * self.taps[1].len()
    }

    /// Copies a block of these pixels and terms of a group, rows `pitch` apart.
    pub(super) fn fill(
        &self,
        group: usize,
        pixels: Range<usize>,
        terms: Range<usize>,
        pitch: usize,
        block: &mut [f32],
    ) {
        let first = group * self.channels * self.strides.channel;
        if self.last {
            self.by_pixel(first, pixels, terms, pitch, block);
        } else {
            self.by_term(first, pixels, terms, pitch, block);
        }
    }

    /// Fills rows of terms: runs of pixels.
    fn by_term(
        &self,
        first: usize,
        pixels: Range<usize>,
        terms: Range<usize>,
        pitch: usize,
        block: &mut [f32],
    ) {
        let (down, across) = (self.taps[0].len(), self.taps[1].len());
        let all = self.terms();
        for (term, out) in terms.zip(block.chunks_mut(pitch)) {
            let out = &mut out[..pixels.len()];
            if term == all {
                out.fill(1.0);
                continue;
            }
            let channel = first + term / (down * across) * self.strides.channel;
            let (row, col) = (self.taps[0][term / across % down], self.taps[1][term % across]);
            let [mut image, mut line, mut at] = self.grid.at(pixels.start);
            let mut rest = out;
            while !rest.is_empty() {
                let count = (self.grid.size[2] - at).min(rest.len());
                let (run, others) = rest.split_at_mut(count);
                let seen = (line * self.step[0]) as isize + row;
                match usize::try_from(seen).ok().filter(|&seen| seen < self.image[0]) {
                    Some(seen) => {
                        let start = channel + image * self.strides.outer + seen * self.strides.row;
                        self.run(start, at, col, run);
                    }
                    None => run.fill(0.0),
                }
                (rest, at, line) = (others, 0, line + 1);
                if line == self.grid.size[1] {
                    (line, image) = (0, image + 1);
                }
            }
        }
    }

    /// Copies the pixels under a tap, of the row of the image at `start`, for pixels of one row of the grid.
    fn run(&self, start: usize, at: usize, tap: isize, out: &mut [f32]) {
        let (step, width, stride) = (self.step[1], self.image[1], self.strides.col);
        let from = (at * step) as isize + tap;
        // Pixels before the image, and those up to its end.
        let before = (usize::try_from(-from).unwrap_or(0)).div_ceil(step).min(out.len());
        let inside =
            usize::try_from(width as isize - from).unwrap_or(0).div_ceil(step).min(out.len()).max(before);
        let (left, rest) = out.split_at_mut(before);
        let (middle, right) = rest.split_at_mut(inside - before);
        left.fill(0.0);
        right.fill(0.0);
        if middle.is_empty() {
            return;
        }
        let first = start + (from + (before * step) as isize) as usize * stride;
        let apart = step * stride;
        if apart == 1 {
            middle.copy_from_slice(&self.data[first..first + middle.len()]);
        } else {
            let source = self.data[first..].iter().step_by(apart);
            middle.iter_mut().zip(source).for_each(|(out, &value)| *out = value);
        }
    }

    /// Fills rows of pixels: channels of taps.
    fn by_pixel(
        &self,
        first: usize,
        pixels: Range<usize>,
        terms: Range<usize>,
        pitch: usize,
        block: &mut [f32],
    ) {
        let across = self.taps[1].len();
        let [mut image, mut line, mut at] = self.grid.at(pixels.start);
        for (_, out) in pixels.zip(block.chunks_mut(pitch)) {
            let (top, left) = ((line * self.step[0]) as isize, (at * self.step[1]) as isize);
            let start = first + image * self.strides.outer;
            let mut term = terms.start;
            let mut rest = &mut out[..terms.len()];
            while !rest.is_empty() {
                let (tap, channel) = (term / self.channels, term % self.channels);
                let count = (self.channels - channel).min(rest.len());
                let (run, others) = rest.split_at_mut(count);
                let inside =
                    |seen: isize, size: usize| usize::try_from(seen).ok().filter(|&seen| seen < size);
                let row = inside(top + self.taps[0][tap / across], self.image[0]);
                let col = inside(left + self.taps[1][tap % across], self.image[1]);
                match (row, col) {
                    (Some(row), Some(col)) => {
                        let from = start + row * self.strides.row + col * self.strides.col + channel;
                        run.copy_from_slice(&self.data[from..from + count]);
                    }
                    _ => run.fill(0.0),
                }
                (rest, term) = (others, term + count);
            }
            at += 1;
            if at == self.grid.size[2] {
                (at, line) = (0, line + 1);
                if line == self.grid.size[1] {
                    (line, image) = (0, image + 1);
                }
            }
        }
    }
}
