//! Some rows of one channel of an image with zeros around them, so that each tap reads a row of pixels as a run of
//! floats.
//!
//! With a step from pixel to pixel, each row is de-interleaved: pixels a multiple of the step apart become neighbours.

use std::ops::Range;

use crate::convolution::patches::Patches;
use crate::convolution::vector::Vector;

/// Largest number of floats of a plane, unless a row of pixels needs more.
const MOST: usize = 12 << 10;

/// The shape of such planes.
#[derive(Debug)]
pub(super) struct Shape {
    /// The smallest row and column offsets of the taps.
    least: [isize; 2],
    /// Number of rows and columns under a row of pixels.
    reach: [usize; 2],
    step: [usize; 2],
    /// Number of floats of a row that are a multiple of the step apart.
    run: usize,
    /// Number of rows of the grid.
    rows: usize,
    /// Largest number of rows of the grid that share a plane.
    pub(super) band: usize,
    /// Offset of the first pixel under each tap.
    pub(super) taps: Vec<usize>,
}

impl Shape {
    pub(super) fn new(patches: &Patches<'_>) -> Shape {
        let [_, rows, cols] = patches.grid.size;
        let least = [0, 1].map(|axis| patches.taps[axis].iter().copied().min().unwrap_or(0));
        let most = [0, 1].map(|axis| patches.taps[axis].iter().copied().max().unwrap_or(0));
        let span = [0, 1].map(|axis| (most[axis] - least[axis]) as usize + 1);
        let step = patches.step;
        let reach = [span[0], (cols - 1) * step[1] + span[1]];
        let run = reach[1].div_ceil(step[1]);
        let pitch = run * step[1];
        let band = ((MOST / pitch).saturating_sub(span[0]) / step[0] + 1).min(rows);
        let bands = rows.div_ceil(band);
        let place = |row: isize, col: isize| {
            let (row, col) = ((row - least[0]) as usize, (col - least[1]) as usize);
            row * pitch + col % step[1] * run + col / step[1]
        };
        let taps =
            patches.taps[0].iter().flat_map(|&row| patches.taps[1].iter().map(move |&col| place(row, col)));
        Shape { least, reach, step, run, rows, band: rows.div_ceil(bands), taps: taps.collect() }
    }

    /// Number of planes of a channel.
    pub(super) fn bands(&self) -> usize {
        self.rows.div_ceil(self.band)
    }

    /// Rows of the grid that use a plane.
    pub(super) fn rows(&self, band: usize) -> Range<usize> {
        band * self.band..((band + 1) * self.band).min(self.rows)
    }

    /// Number of floats of a plane.
    pub(super) fn len(&self) -> usize {
        self.lines(self.band) * self.run * self.step[1]
    }

    /// Floats of the plane from one row of pixels to the next.
    pub(super) fn pitch(&self) -> usize {
        self.step[0] * self.run * self.step[1]
    }

    /// Number of image rows under these rows of the grid.
    fn lines(&self, rows: usize) -> usize {
        (rows - 1) * self.step[0] + self.reach[0]
    }

    /// Copies the image rows under these rows of the grid, of the channel at `start`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    pub(super) unsafe fn fill<V: Vector>(
        &self,
        patches: &Patches<'_>,
        start: usize,
        rows: Range<usize>,
        plane: &mut [f32],
    ) {
        let [height, width] = patches.image;
        let first = (rows.start * self.step[0]) as isize + self.least[0];
        // Parts of a row: zeros before the image, its pixels from `skip` on, and zeros behind.
        let left = usize::try_from(-self.least[1]).unwrap_or(0).min(self.reach[1]);
        let skip = usize::try_from(self.least[1]).unwrap_or(0).min(width);
        let count = (width - skip).min(self.reach[1] - left);
        let lines = plane.chunks_exact_mut(self.run * self.step[1]).take(self.lines(rows.len()));
        for (line, out) in lines.enumerate() {
            let seen = first + line as isize;
            let Some(seen) = usize::try_from(seen).ok().filter(|&seen| seen < height) else {
                out.fill(0.0);
                continue;
            };
            let from = &patches.data[start + seen * patches.strides.row..][..width][skip..skip + count];
            if self.step[1] == 1 {
                out[..left].fill(0.0);
                // SAFETY: as the caller promises.
                unsafe { copy::<V>(from, &mut out[left..left + count]) };
                out[left + count..].fill(0.0);
            } else {
                self.deal(left, from, out);
            }
        }
    }

    /// De-interleaves a row.
    #[inline(always)]
    fn deal(&self, left: usize, from: &[f32], out: &mut [f32]) {
        let step = self.step[1];
        for (at, out) in out.chunks_exact_mut(self.run).enumerate() {
            // The first pixel of the image in this run, and the number of zeros before it.
            let before = left.saturating_sub(at).div_ceil(step).min(self.run);
            let first = (at + before * step).saturating_sub(left).min(from.len());
            let count = (from.len() - first).div_ceil(step).min(self.run - before);
            out[..before].fill(0.0);
            let (now, rest) = out[before..].split_at_mut(count);
            if step == 2 {
                // Pairs, which vector instructions can separate.
                let (pairs, last) = from[first..].as_chunks::<2>();
                now.iter_mut().zip(pairs).for_each(|(out, pair)| *out = pair[0]);
                if pairs.len() < count {
                    now[pairs.len()] = last[0];
                }
            } else {
                now.iter_mut().zip(from[first..].iter().step_by(step)).for_each(|(out, &value)| *out = value);
            }
            rest.fill(0.0);
        }
    }
}

/// Copies floats to a slice of equal length, inline: a call would take longer than a short row.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn copy<V: Vector>(from: &[f32], to: &mut [f32]) {
    assert!(from.len() == to.len());
    let mut at = 0;
    // SAFETY: inside of both slices.
    unsafe {
        while at + V::LANES <= from.len() {
            V::load(from.as_ptr().add(at)).store(to.as_mut_ptr().add(at));
            at += V::LANES;
        }
        if at < from.len() {
            let count = from.len() - at;
            V::load_first(from.as_ptr().add(at), count).store_first(to.as_mut_ptr().add(at), count);
        }
    }
}
