//! The gradient of the weights of a depthwise convolution.

use super::depthwise::add_products;
use super::layout::Strides;
use super::patches::Patches;
use crate::Cpu;
use crate::cpu::share;
use crate::gemm::{Loop, lend, multiply_add, widen};
use crate::shared::Shared;

/// Channels, or pixels, side by side in registers.
const LANES: usize = 32;

/// Stretches of rows of pixels that are added apart, at most; their number depends on the sizes alone.
const STRETCHES: usize = 64;

/// Adds into `dweight`, `[channels, taps]`, the products of what the pixels see with their gradients, at `dy`.
pub(super) fn weight_gradient(
    cpu: &Cpu,
    patches: &Patches<'_>,
    dy: &[f32],
    strides: Strides,
    dweight: &mut [f32],
) {
    let [_, taps] = patches.counts();
    let channels = dweight.len() / taps;
    if !patches.last {
        let dweight = Shared::new(dweight);
        return cpu.run(channels, |channel| {
            // SAFETY: `run` does each part once, and each has a channel.
            let sums = unsafe { dweight.range(channel * taps, taps) };
            widen(cpu.arch(), Channel { patches, dy, strides, channel, sums });
        });
    }
    let [images, rows, _] = patches.grid.size;
    let stretches = (images * rows).min(STRETCHES);
    let all = taps * channels;
    lend(stretches * all, |sums| {
        let shared = Shared::new(sums);
        cpu.run(stretches, |part| {
            // SAFETY: `run` does each part once, and each has sums of its own.
            let sums = unsafe { shared.range(part * all, all) };
            sums.fill(0.0);
            for line in share(images * rows, stretches, part) {
                let (image, row) = (line / rows, line % rows);
                widen(cpu.arch(), Row { patches, dy, strides, image, row, channels, sums });
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

/// All taps of one channel, channels first.
struct Channel<'p, 'a> {
    patches: &'p Patches<'a>,
    dy: &'p [f32],
    strides: Strides,
    channel: usize,
    sums: &'p mut [f32],
}

impl Loop for Channel<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (patches, [across, _]) = (self.patches, self.patches.counts());
        let [images, rows, cols] = patches.grid.size;
        for (term, sum) in self.sums.iter_mut().enumerate() {
            let (tap_row, tap) = (term / across, term % across);
            let (seen_cols, first) = patches.columns(tap);
            let mut lanes = [0.0_f32; LANES];
            for (image, row) in (0..images).flat_map(|image| (0..rows).map(move |row| (image, row))) {
                let Some(seen) = patches.seen(row, tap_row).filter(|_| !seen_cols.is_empty()) else {
                    continue;
                };
                let start = image * patches.strides.outer + self.channel * patches.strides.channel;
                let x = &patches.data[start + seen * patches.strides.row..][..patches.image[1]][first..];
                let start = image * self.strides.outer + self.channel * self.strides.channel;
                let dy = &self.dy[start + row * self.strides.row..][..cols][seen_cols.clone()];
                if patches.step[1] == 1 {
                    for (dy, x) in dy.chunks(LANES).zip(x.chunks(LANES)) {
                        let count = dy.len().min(x.len());
                        add_products::<FUSED>(&mut lanes, &dy[..count], &x[..count]);
                    }
                } else {
                    let x = x.iter().step_by(patches.step[1]);
                    for ((&dy, &x), at) in dy.iter().zip(x).zip((0..LANES).cycle()) {
                        lanes[at] = multiply_add::<FUSED>(dy, x, lanes[at]);
                    }
                }
            }
            *sum = lanes.iter().sum();
        }
    }
}

/// A row of pixels of all channels, channels last.
struct Row<'p, 'a> {
    patches: &'p Patches<'a>,
    dy: &'p [f32],
    strides: Strides,
    image: usize,
    row: usize,
    channels: usize,
    /// `[taps, channels]`.
    sums: &'p mut [f32],
}

impl Loop for Row<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (patches, channels, [across, _]) = (self.patches, self.channels, self.patches.counts());
        let dy = &self.dy[self.image * self.strides.outer + self.row * self.strides.row..];
        for (term, sums) in self.sums.chunks_exact_mut(channels).enumerate() {
            let Some(line) = patches.seen(self.row, term / across) else { continue };
            let (cols, first) = patches.columns(term % across);
            let start = self.image * patches.strides.outer + line * patches.strides.row;
            for (from, sums) in (0..channels).step_by(LANES).zip(sums.chunks_mut(LANES)) {
                let mut lanes = [0.0_f32; LANES];
                lanes[..sums.len()].copy_from_slice(sums);
                for (at, col) in cols.clone().enumerate() {
                    let x = start + (first + at * patches.step[1]) * patches.strides.col + from;
                    let (x, dy) = (&patches.data[x..], &dy[col * self.strides.col + from..]);
                    add_products::<FUSED>(&mut lanes, &x[..sums.len()], &dy[..sums.len()]);
                }
                sums.copy_from_slice(&lanes[..sums.len()]);
            }
        }
    }
}
