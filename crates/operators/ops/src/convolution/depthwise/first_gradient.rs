//! The gradient of the weights, channels first: some taps of a channel at a time, whose sums stay in registers over an
//! image.

use super::plane::Shape;
use crate::Cpu;
use crate::convolution::layout::Strides;
use crate::convolution::patches::Patches;
use crate::convolution::vector::{Kernel, Vector, vectorize};
use crate::gemm::with_buffer;
use crate::shared::Shared;

/// Number of taps that are summed at the same time.
const SIDE: usize = 5;

/// See [`weight_gradient`](super::weight_gradient).
pub(super) fn weight_gradient(
    cpu: &Cpu,
    patches: &Patches<'_>,
    dy: &[f32],
    strides: Strides,
    dweight: &mut [f32],
) {
    let [_, taps] = patches.counts();
    let channels = dweight.len() / taps;
    assert!(patches.holds(channels) && strides.col == 1);
    let shape = Shape::new(patches);
    let dweight = Shared::new(dweight);
    cpu.run(channels, |channel| {
        // SAFETY: `run` does each part once, and each has a channel.
        let sums = unsafe { dweight.range(channel * taps, taps) };
        with_buffer(shape.len(), |plane| {
            vectorize(cpu.arch(), Channel { patches, shape: &shape, dy, strides, channel, plane, sums });
        });
    });
}

/// All taps of one channel.
struct Channel<'p, 'a> {
    patches: &'p Patches<'a>,
    shape: &'p Shape,
    dy: &'p [f32],
    strides: Strides,
    channel: usize,
    plane: &'p mut [f32],
    sums: &'p mut [f32],
}

impl Kernel for Channel<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Channel { patches, shape, dy, strides, channel, plane, sums } = self;
        let [images, _, cols] = patches.grid.size;
        sums.fill(0.0);
        for (image, band) in (0..images).flat_map(|image| (0..shape.bands()).map(move |band| (image, band))) {
            let start = image * patches.strides.outer + channel * patches.strides.channel;
            let rows = shape.rows(band);
            // SAFETY: the processor has the instructions, by the caller's promise.
            unsafe { shape.fill::<V>(patches, start, rows.clone(), plane) };
            let start = image * strides.outer + channel * strides.channel + rows.start * strides.row;
            let dy = &dy[start..][..(rows.len() - 1) * strides.row + cols];
            let band = Band { plane, pitch: shape.pitch(), dy, next: strides.row, rows: rows.len(), cols };
            for (taps, sums) in shape.taps.chunks(SIDE).zip(sums.chunks_mut(SIDE)) {
                // SAFETY: as above.
                unsafe {
                    match taps.len() {
                        1 => band.add::<V, 1>(taps, sums),
                        2 => band.add::<V, 2>(taps, sums),
                        3 => band.add::<V, 3>(taps, sums),
                        4 => band.add::<V, 4>(taps, sums),
                        _ => band.add::<V, SIDE>(taps, sums),
                    }
                }
            }
        }
    }
}

/// Some rows of pixels: the plane under their taps, and their gradients.
struct Band<'p> {
    plane: &'p [f32],
    /// Floats of the plane from one row of pixels to the next.
    pitch: usize,
    dy: &'p [f32],
    /// Floats from a row of gradients to the next.
    next: usize,
    rows: usize,
    cols: usize,
}

impl Band<'_> {
    /// Adds the products of `T` taps to their sums.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    unsafe fn add<V: Vector, const T: usize>(&self, taps: &[usize], sums: &mut [f32]) {
        let taps: [usize; T] = std::array::from_fn(|tap| taps[tap]);
        let furthest = taps.iter().max().map_or(0, |tap| (self.rows - 1) * self.pitch + tap + self.cols);
        assert!(furthest <= self.plane.len() && (self.rows - 1) * self.next + self.cols <= self.dy.len());
        // SAFETY: the last float of plane and gradients that is read is in bounds, as was checked.
        unsafe {
            let mut lanes = [V::splat(0.0); T];
            for row in 0..self.rows {
                let x = self.plane.as_ptr().add(row * self.pitch);
                let dy = self.dy.as_ptr().add(row * self.next);
                let mut col = 0;
                while col + V::LANES <= self.cols {
                    let gradient = V::load(dy.add(col));
                    for tap in 0..T {
                        lanes[tap] = V::load(x.add(taps[tap] + col)).multiply_add(gradient, lanes[tap]);
                    }
                    col += V::LANES;
                }
                if col < self.cols {
                    let count = self.cols - col;
                    let gradient = V::load_first(dy.add(col), count);
                    for tap in 0..T {
                        let x = V::load_first(x.add(taps[tap] + col), count);
                        lanes[tap] = x.multiply_add(gradient, lanes[tap]);
                    }
                }
            }
            for (sum, lanes) in sums.iter_mut().zip(lanes) {
                *sum += lanes.sum();
            }
        }
    }
}
