//! Channels first: a row of pixels of one channel, some vectors at a time. Sums stay in registers over all taps.

use super::plane::Shape;
use crate::Cpu;
use crate::convolution::product::Product;
use crate::convolution::vector::{Kernel, Vector, vectorize};
use crate::gemm::with_buffer;
use crate::shared::Shared;

/// Number of vectors that are added at the same time.
const SIDE: usize = 4;

/// Number of pixels of a part: of several channels where they are small.
const PIXELS: usize = 2048;

/// Computes the product, where a group has one channel and one lane.
pub(super) fn product(of: &Product<'_>, cpu: &Cpu, y: &mut [f32]) {
    let (weights, patches) = (&of.weights, &of.patches);
    let (channels, [images, rows, cols]) = (weights.groups, patches.grid.size);
    assert!(patches.holds(channels));
    let shape = Shape::new(patches);
    let bands = shape.bands();
    let together = (PIXELS / (rows * cols)).clamp(1, channels);
    let pieces = channels.div_ceil(together);
    let y = Shared::new(y);
    cpu.run(images * pieces * bands, |part| {
        let (image, piece, band) = (part / (pieces * bands), part / bands % pieces, part % bands);
        for channel in piece * together..((piece + 1) * together).min(channels) {
            with_buffer(shape.len(), |plane| {
                vectorize(cpu.arch(), Band { of, shape: &shape, image, channel, band, plane, y });
            });
        }
    });
}

/// Some rows of pixels of one channel.
struct Band<'p, 'a> {
    of: &'p Product<'a>,
    shape: &'p Shape,
    image: usize,
    channel: usize,
    band: usize,
    plane: &'p mut [f32],
    y: Shared<'p, f32>,
}

impl Kernel for Band<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Band { of, shape, image, channel, band, plane, y } = self;
        let (patches, weights, strides) = (&of.patches, &of.weights, &of.places.strides);
        let (rows, cols) = (shape.rows(band), patches.grid.size[2]);
        let start = image * patches.strides.outer + channel * patches.strides.channel;
        // SAFETY: the processor has the instructions, by the caller's promise.
        unsafe { shape.fill::<V>(patches, start, rows.clone(), plane) };
        let plane = &*plane;
        let kernel = &weights.data[channel * weights.group_stride..];
        let bias = weights.bias.map_or(0.0, |bias| bias[channel]);
        for (at, row) in rows.enumerate() {
            let place =
                of.places.start + image * strides.outer + channel * strides.channel + row * strides.row;
            // SAFETY: each part is done once, and has rows of the grid by its number. No pixels of another part are
            // between its own.
            let y = unsafe { y.range(place, (cols - 1) * strides.col + 1) };
            let line = Line {
                plane: &plane[at * shape.pitch()..],
                taps: &shape.taps,
                terms: &weights.terms,
                kernel,
                bias,
            };
            // SAFETY: the processor has the instructions; the pixels under the taps are in the plane.
            unsafe {
                if strides.col == 1 {
                    line.run::<V>(y);
                } else {
                    with_buffer(cols, |sums| {
                        line.run::<V>(sums);
                        y.iter_mut().step_by(strides.col).zip(&*sums).for_each(|(y, &sum)| *y = sum);
                    });
                }
            }
        }
    }
}

/// Operands of a row of pixels.
struct Line<'p> {
    /// The plane, from the first pixel under the taps on.
    plane: &'p [f32],
    taps: &'p [usize],
    /// Index of each tap's weight in the kernel.
    terms: &'p [usize],
    kernel: &'p [f32],
    bias: f32,
}

impl Line<'_> {
    /// Computes all pixels of the row.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self, y: &mut [f32]) {
        let furthest = self.taps.iter().max().map_or(0, |tap| tap + y.len());
        assert!(furthest <= self.plane.len() && self.taps.len() == self.terms.len());
        let mut col = 0;
        // SAFETY: the plane holds the pixels under the taps of all pixels.
        unsafe {
            while y.len() - col >= SIDE * V::LANES {
                self.vectors::<V, SIDE>(col, &mut y[col..col + SIDE * V::LANES]);
                col += SIDE * V::LANES;
            }
            let rest = &mut y[col..];
            match rest.len().div_ceil(V::LANES) {
                0 => {}
                1 => self.vectors::<V, 1>(col, rest),
                2 => self.vectors::<V, 2>(col, rest),
                3 => self.vectors::<V, 3>(col, rest),
                _ => self.vectors::<V, SIDE>(col, rest),
            }
        }
    }

    /// Computes the pixels of `N` vectors from `col` on, the last partly used.
    ///
    /// # Safety
    ///
    /// As for [`run`](Line::run); `y` needs `N` vectors, and the plane holds the pixels under the taps of these pixels.
    #[inline(always)]
    unsafe fn vectors<V: Vector, const N: usize>(&self, col: usize, y: &mut [f32]) {
        let last = y.len() - (N - 1) * V::LANES;
        // SAFETY: as the caller promises; of the last vector only the first `last` floats are accessed.
        unsafe {
            let mut sums = [V::splat(self.bias); N];
            for (&tap, &term) in self.taps.iter().zip(self.terms) {
                let weight = V::splat(self.kernel[term]);
                let x = self.plane.as_ptr().add(tap + col);
                for (at, sum) in sums.iter_mut().enumerate().take(N - 1) {
                    *sum = V::load(x.add(at * V::LANES)).multiply_add(weight, *sum);
                }
                let x = x.add((N - 1) * V::LANES);
                let x = V::load_some(x, last);
                sums[N - 1] = x.multiply_add(weight, sums[N - 1]);
            }
            let y = y.as_mut_ptr();
            for (at, sum) in sums.iter().enumerate().take(N - 1) {
                sum.store(y.add(at * V::LANES));
            }
            sums[N - 1].store_first(y.add((N - 1) * V::LANES), last);
        }
    }
}
