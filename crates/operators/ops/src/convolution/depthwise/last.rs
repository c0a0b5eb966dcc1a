//! Channels last: some pixels of a row, a vector of channels at a time. Sums stay in registers over all taps.

use std::ops::Range;

use crate::Cpu;
use crate::convolution::product::Product;
use crate::convolution::vector::{Kernel, Vector, vectorize};
use crate::gemm::with_buffer;
use crate::shared::Shared;

/// Number of pixels that are summed at the same time.
const PIXELS: usize = 6;

/// Computes the product, where a group has one channel and one lane.
pub(super) fn product(of: &Product<'_>, cpu: &Cpu, y: &mut [f32]) {
    let (weights, patches) = (&of.weights, &of.patches);
    let (channels, [_, taps]) = (weights.groups, patches.counts());
    let [images, rows, cols] = patches.grid.size;
    assert!(patches.holds(channels) && of.bias.is_none_or(|bias| bias.len() == channels));
    let y = Shared::new(y);
    with_buffer(taps * channels, |kernel| {
        for (term, at) in weights.terms.iter().enumerate() {
            for group in 0..channels {
                kernel[term * channels + group] = weights.data[group * weights.group_stride + at];
            }
        }
        let kernel = &*kernel;
        cpu.run(images * rows, |part| {
            let (image, row) = (part / rows, part % rows);
            let strides = &of.places.strides;
            let place = of.places.start + image * strides.outer + row * strides.row;
            // SAFETY: each part is done once, and has a row of the grid by its number. No pixels of another part are
            // between its own.
            let y = unsafe { y.range(place, (cols - 1) * strides.col + channels) };
            let seen: Vec<_> = (0..patches.taps[0].len())
                .filter_map(|tap| {
                    let line = patches.image_row(row, tap)?;
                    let start = image * patches.strides.outer + line * patches.strides.row;
                    Some((start, tap * patches.taps[1].len() * channels))
                })
                .collect();
            vectorize(cpu.arch(), Row { of, seen: &seen, kernel, channels, y });
        });
    });
}

/// A row of pixels of all channels.
struct Row<'p, 'a> {
    of: &'p Product<'a>,
    /// Offsets in the image of the rows under the taps, and offsets of these taps in the kernel.
    seen: &'p [(usize, usize)],
    kernel: &'p [f32],
    channels: usize,
    y: &'p mut [f32],
}

impl Kernel for Row<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let patches = &self.of.patches;
        let (inner, across, cols) = (patches.inner_columns(), patches.taps[1].len(), patches.grid.size[2]);
        for col in (0..inner.start).chain(inner.end..cols) {
            let sees = |&tap: &usize| patches.columns(tap).contains(&col);
            // They are consecutive: taps are in the order of the image or in reverse.
            let from = (0..across).find(sees).unwrap_or(0);
            let count = (from..across).take_while(sees).count();
            // SAFETY: these taps of the pixel are inside of the image.
            unsafe { self.pixels::<V, 1>(col, from..from + count) };
        }
        let mut col = inner.start;
        while col + PIXELS <= inner.end {
            // SAFETY: all taps of these pixels are inside of the image.
            unsafe { self.pixels::<V, PIXELS>(col, 0..across) };
            col += PIXELS;
        }
        while col + 2 <= inner.end {
            // SAFETY: as above.
            unsafe { self.pixels::<V, 2>(col, 0..across) };
            col += 2;
        }
        if col < inner.end {
            // SAFETY: as above.
            unsafe { self.pixels::<V, 1>(col, 0..across) };
        }
    }
}

impl Row<'_, '_> {
    /// Computes all channels of `P` pixels from `col` on.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`, and these columns of taps are inside of the image for all pixels.
    #[inline(always)]
    unsafe fn pixels<V: Vector, const P: usize>(&mut self, col: usize, taps: Range<usize>) {
        let (patches, channels) = (&self.of.patches, self.channels);
        let (x_next, y_next) = (patches.step[1] * patches.strides.col, self.of.places.strides.col);
        let all = (col + P - 1) * y_next + channels;
        let (y, bias) = (self.y[col * y_next..all].as_mut_ptr(), self.of.bias.map(<[f32]>::as_ptr));
        let mut channel = 0;
        while channel < channels {
            let count = V::LANES.min(channels - channel);
            // SAFETY: `holds` was checked: the pixels under the taps are in the image, for all channels. The kernel has
            // all channels for each tap, and so has the bias.
            unsafe {
                let load = |from: *const f32| V::load_some(from, count);
                let bias = match bias {
                    Some(bias) => load(bias.add(channel)),
                    None => V::splat(0.0),
                };
                let mut sums = [bias; P];
                for &(line, kernel) in self.seen {
                    for tap in taps.clone() {
                        let weight = load(self.kernel.as_ptr().add(kernel + tap * channels + channel));
                        let at = (col * patches.step[1]).wrapping_add_signed(patches.taps[1][tap]);
                        let x = patches.data.as_ptr().add(line + at * patches.strides.col + channel);
                        for (pixel, sum) in sums.iter_mut().enumerate() {
                            *sum = load(x.add(pixel * x_next)).multiply_add(weight, *sum);
                        }
                    }
                }
                for (pixel, &sum) in sums.iter().enumerate() {
                    let y = y.add(pixel * y_next + channel);
                    sum.store_some(y, count);
                }
            }
            channel += V::LANES;
        }
    }
}
