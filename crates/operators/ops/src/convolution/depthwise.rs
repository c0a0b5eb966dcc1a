//! Convolutions of one channel a group: sums of a few products, with what is innermost in memory side by side.

use std::ops::Range;

use super::patches::Patches;
use super::product::Product;
use crate::Cpu;
use crate::gemm::{Loop, lend, multiply_add, widen};
use crate::shared::Shared;

/// Channels side by side in registers.
const LANES: usize = 32;

impl Patches<'_> {
    /// The row of the image that a row of the grid sees through a row of taps.
    pub(super) fn seen(&self, row: usize, tap: usize) -> Option<usize> {
        let seen = (row * self.step[0]) as isize + self.taps[0][tap];
        usize::try_from(seen).ok().filter(|&seen| seen < self.image[0])
    }

    /// The columns of the grid that see the image through a column of taps, and what the first of them sees.
    pub(super) fn columns(&self, tap: usize) -> (Range<usize>, usize) {
        let (step, from, cols) = (self.step[1], self.taps[1][tap], self.grid.size[2]);
        let until = |pixel: isize| usize::try_from(pixel).unwrap_or(0).div_ceil(step).min(cols);
        let before = until(-from);
        let inside = until(self.image[1] as isize - from).max(before);
        let first = usize::try_from((before * step) as isize + from).unwrap_or(0);
        (before..inside, first)
    }

    /// Taps of a row, and of all.
    pub(super) fn counts(&self) -> [usize; 2] {
        [self.taps[1].len(), self.taps[0].len() * self.taps[1].len()]
    }
}

impl Product<'_> {
    /// Computes it, where a group has one channel and one lane.
    pub(super) fn run_depthwise(&self, cpu: &Cpu, y: &mut [f32]) {
        let (weights, patches) = (&self.weights, &self.patches);
        let (channels, [_, taps]) = (weights.groups, patches.counts());
        let [images, rows, cols] = patches.grid.size;
        let y = Shared::new(y);
        lend(taps * channels, |kernel| {
            // Taps of a channel side by side, or channels of a tap.
            let [channel, tap] = if patches.last { [1, channels] } else { [taps, 1] };
            for (term, at) in weights.terms.iter().enumerate() {
                for group in 0..channels {
                    kernel[group * channel + term * tap] = weights.data[group * weights.group_stride + at];
                }
            }
            let kernel = &*kernel;
            if patches.last {
                return cpu.run(images * rows, |part| {
                    // SAFETY: each part is done once, and has a row of the grid by its number.
                    widen(cpu.arch(), Row { product: self, image: part / rows, row: part % rows, kernel, y });
                });
            }
            cpu.run(images * channels, |part| {
                let (image, group) = (part / channels, part % channels);
                let kernel = &kernel[group * taps..][..taps];
                lend(cols, |sums| {
                    for row in 0..rows {
                        widen(cpu.arch(), Line { product: self, image, group, row, kernel, sums });
                        let strides = &self.places.strides;
                        let place = self.places.start
                            + image * strides.outer
                            + group * strides.channel
                            + row * strides.row;
                        // SAFETY: each part is done once, and has a channel of an image by its number.
                        let y = unsafe { y.range(place, (cols - 1) * strides.col + 1) };
                        let places = y.iter_mut().step_by(strides.col);
                        places.zip(&*sums).for_each(|(y, &sum)| *y = sum);
                    }
                });
            });
        });
    }
}

/// A row of pixels of one channel.
struct Line<'p, 'a> {
    product: &'p Product<'a>,
    image: usize,
    group: usize,
    row: usize,
    kernel: &'p [f32],
    sums: &'p mut [f32],
}

impl Loop for Line<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let patches = &self.product.patches;
        let plane = self.image * patches.strides.outer + self.group * patches.strides.channel;
        self.sums.fill(self.product.weights.bias.map_or(0.0, |bias| bias[self.group]));
        let [across, _] = patches.counts();
        for tap_row in 0..patches.taps[0].len() {
            let Some(seen) = patches.seen(self.row, tap_row) else { continue };
            let line = &patches.data[plane + seen * patches.strides.row..][..patches.image[1]];
            for tap in 0..across {
                let (cols, first) = patches.columns(tap);
                if cols.is_empty() {
                    continue;
                }
                let (weight, sums) = (self.kernel[tap_row * across + tap], &mut self.sums[cols]);
                let add = |(sum, &x): (&mut f32, &f32)| *sum = multiply_add::<FUSED>(weight, x, *sum);
                if patches.step[1] == 1 {
                    sums.iter_mut().zip(&line[first..]).for_each(add);
                } else {
                    sums.iter_mut().zip(line[first..].iter().step_by(patches.step[1])).for_each(add);
                }
            }
        }
    }
}

/// A row of pixels of all channels.
struct Row<'p, 'a> {
    product: &'p Product<'a>,
    image: usize,
    row: usize,
    kernel: &'p [f32],
    y: Shared<'p, f32>,
}

impl Loop for Row<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Product { patches, places, weights, bias } = self.product;
        let (channels, [across, taps]) = (weights.groups, patches.counts());
        let mut seen = Vec::with_capacity(taps);
        for col in 0..patches.grid.size[2] {
            // Where the pixels that it sees begin, and their weights.
            seen.clear();
            for tap_row in 0..patches.taps[0].len() {
                let Some(line) = patches.seen(self.row, tap_row) else { continue };
                let start = self.image * patches.strides.outer + line * patches.strides.row;
                for tap in 0..across {
                    let at = (col * patches.step[1]) as isize + patches.taps[1][tap];
                    if let Some(at) = usize::try_from(at).ok().filter(|&at| at < patches.image[1]) {
                        seen.push((start + at * patches.strides.col, (tap_row * across + tap) * channels));
                    }
                }
            }
            let strides = &places.strides;
            let place =
                places.start + self.image * strides.outer + self.row * strides.row + col * strides.col;
            for from in (0..channels).step_by(LANES) {
                let count = LANES.min(channels - from);
                let mut sums = [0.0_f32; LANES];
                if let Some(bias) = bias {
                    sums[..count].copy_from_slice(&bias[from..from + count]);
                }
                for &(x, weight) in &seen {
                    let x = &patches.data[x + from..][..count];
                    let weight = &self.kernel[weight + from..][..count];
                    add_products::<FUSED>(&mut sums, x, weight);
                }
                // SAFETY: a pixel of this row, of which this part writes all.
                unsafe { self.y.range(place + from, count) }.copy_from_slice(&sums[..count]);
            }
        }
    }
}

/// `sums += a * b`; whole vectors where there are as many as lanes.
#[inline(always)]
pub(super) fn add_products<const FUSED: bool>(sums: &mut [f32; LANES], a: &[f32], b: &[f32]) {
    if let (Ok(a), Ok(b)) = (<&[f32; LANES]>::try_from(a), <&[f32; LANES]>::try_from(b)) {
        for lane in 0..LANES {
            sums[lane] = multiply_add::<FUSED>(a[lane], b[lane], sums[lane]);
        }
        return;
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
        *sum = multiply_add::<FUSED>(a, b, *sum);
    }
}
