//! The gradient of the weights, channels last: some taps of a vector of channels at a time, whose sums stay in registers
//! over a row of pixels.

use std::ops::Range;

use crate::Cpu;
use crate::convolution::layout::Strides;
use crate::convolution::patches::Patches;
use crate::convolution::vector::{Kernel, Vector, vectorize};
use crate::cpu::share;
use crate::gemm::with_buffer;
use crate::shared::Shared;

/// Number of taps that are summed at the same time.
const SIDE: usize = 5;

/// Largest number of stretches of rows of pixels that are added separately; their number depends on the sizes alone.
const STRETCHES: usize = 64;

/// See [`weight_gradient`](super::weight_gradient).
pub(super) fn weight_gradient(
    cpu: &Cpu,
    patches: &Patches<'_>,
    dy: &[f32],
    strides: Strides,
    dweight: &mut [f32],
) {
    let [across, taps] = patches.counts();
    let channels = dweight.len() / taps;
    assert!(patches.holds(channels));
    let [images, rows, cols] = patches.grid.size;
    let stretches = (images * rows).min(STRETCHES);
    let all = taps * channels;
    with_buffer(stretches * all, |sums| {
        let shared = Shared::new(sums);
        cpu.run(stretches, |part| {
            // SAFETY: `run` does each part once, and each has its own sums.
            let sums = unsafe { shared.range(part * all, all) };
            sums.fill(0.0);
            let mut seen = Vec::with_capacity(taps);
            for line in share(images * rows, stretches, part) {
                let (image, row) = (line / rows, line % rows);
                seen.clear();
                seen.extend((0..taps).filter_map(|term| {
                    let line = patches.image_row(row, term / across)?;
                    Some(Tap { term, line: image * patches.strides.outer + line * patches.strides.row })
                }));
                let dy =
                    &dy[image * strides.outer + row * strides.row..][..(cols - 1) * strides.col + channels];
                vectorize(cpu.arch(), Row { patches, seen: &seen, dy, next: strides.col, channels, sums });
            }
        });
        for channel in 0..channels {
            for tap in 0..taps {
                let place = tap * channels + channel;
                dweight[channel * taps + tap] = sums[place..].iter().step_by(all).sum();
            }
        }
    });
}

/// A tap, and the offset in the image of the row under it.
#[derive(Clone, Copy)]
struct Tap {
    term: usize,
    line: usize,
}

/// A row of pixels of all channels.
struct Row<'p, 'a> {
    patches: &'p Patches<'a>,
    /// The taps that are inside of the image.
    seen: &'p [Tap],
    dy: &'p [f32],
    /// Floats from a gradient to the next.
    next: usize,
    channels: usize,
    /// `[taps, channels]`.
    sums: &'p mut [f32],
}

impl Kernel for Row<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let (seen, across) = (self.seen, self.patches.taps[1].len());
        let inner = self.patches.inner_columns();
        // SAFETY: all taps are inside of the image for the inner pixels, and each tap for its own pixels.
        unsafe {
            for taps in seen.chunks(SIDE) {
                match taps.len() {
                    1 => self.add::<V, 1>(taps, inner.clone()),
                    2 => self.add::<V, 2>(taps, inner.clone()),
                    3 => self.add::<V, 3>(taps, inner.clone()),
                    4 => self.add::<V, 4>(taps, inner.clone()),
                    _ => self.add::<V, SIDE>(taps, inner.clone()),
                }
            }
            for tap in seen {
                let all = self.patches.columns(tap.term % across);
                self.add::<V, 1>(&[*tap], all.start..all.end.min(inner.start));
                self.add::<V, 1>(&[*tap], all.start.max(inner.end)..all.end);
            }
        }
    }
}

impl Row<'_, '_> {
    /// Adds the products of `T` taps over some pixels to their sums.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`, and the taps are inside of the image for these pixels.
    #[inline(always)]
    unsafe fn add<V: Vector, const T: usize>(&mut self, taps: &[Tap], cols: Range<usize>) {
        if cols.is_empty() {
            return;
        }
        let (patches, channels) = (self.patches, self.channels);
        let (across, apart) = (patches.taps[1].len(), patches.step[1] * patches.strides.col);
        let first: [usize; T] = std::array::from_fn(|tap| {
            let Tap { term, line } = taps[tap];
            let at = (cols.start * patches.step[1]).wrapping_add_signed(patches.taps[1][term % across]);
            line + at * patches.strides.col
        });
        let places: [usize; T] = std::array::from_fn(|tap| taps[tap].term * channels);
        assert!(places.iter().all(|place| place + channels <= self.sums.len()));
        assert!((cols.end - 1) * self.next + channels <= self.dy.len());
        let mut channel = 0;
        while channel < channels {
            let count = V::LANES.min(channels - channel);
            // SAFETY: `holds` was checked: the pixels under the taps are in the image, for all channels. Gradients and
            // sums were checked above.
            unsafe {
                let load = |from: *const f32| V::load_some(from, count);
                let sums = self.sums.as_mut_ptr().add(channel);
                let mut lanes = [V::splat(0.0); T];
                for tap in 0..T {
                    lanes[tap] = load(sums.add(places[tap]));
                }
                let mut x = patches.data.as_ptr().add(channel);
                for col in cols.clone() {
                    let gradient = load(self.dy.as_ptr().add(col * self.next + channel));
                    for tap in 0..T {
                        lanes[tap] = load(x.add(first[tap])).multiply_add(gradient, lanes[tap]);
                    }
                    x = x.wrapping_add(apart);
                }
                for tap in 0..T {
                    let place = sums.add(places[tap]);
                    lanes[tap].store_some(place, count);
                }
            }
            channel += V::LANES;
        }
    }
}
