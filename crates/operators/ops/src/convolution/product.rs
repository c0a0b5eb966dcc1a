//! The product of patches with weights: the forward pass, and the gradient of the input.
//!
//! ```text
//! all threads pack the weights                       panels of a few lanes, block of terms by block
//! all threads, each its pixels and lanes
//!   for each block of terms                          the patches of its pixels: in the second-level cache
//!     for some panels of weights                     in the second-level cache too
//!       for each tile of pixels
//!         for each of the panels                     one register tile
//! ```

use std::ops::Range;

use super::cut::{Cut, Shape, pitch};
use super::patches::Patches;
use super::pixels::Places;
use super::weights::{Panels, Weights};
use crate::Cpu;
use crate::gemm::{MatMut, Store, Strip, Window, tile, with_buffer};
use crate::shared::Shared;

/// Elements of the largest register tile.
const MOST: usize = 1024;

/// `y = patches x weights`, for all groups.
pub(super) struct Product<'a> {
    pub(super) patches: Patches<'a>,
    pub(super) weights: Weights<'a>,
    /// One element for each lane of each group, where pixels are the rows of tiles.
    pub(super) bias: Option<&'a [f32]>,
    /// Places where the pixels of the patches' grid are written.
    pub(super) places: Places,
}

/// Common data of the parts of a product.
struct Parts<'p, 'a> {
    product: &'p Product<'a>,
    cpu: &'p Cpu,
    cut: Cut,
    panels: Panels,
    /// Packed in the stage before.
    packed: Shared<'p, f32>,
    y: Shared<'p, f32>,
}

impl Product<'_> {
    /// Computes the product.
    pub(super) fn run(&self, cpu: &Cpu, y: &mut [f32]) {
        let (weights, pixels) = (&self.weights, self.places.grid.count());
        if pixels == 0 {
            return;
        }
        if weights.lanes == 1 && self.patches.channels == 1 {
            return self.run_depthwise(cpu, y);
        }
        let terms = self.patches.terms() + usize::from(self.patches.ones);
        let shape = Shape { groups: weights.groups, pixels, lanes: weights.lanes, terms };
        let cut = Cut::new(cpu.isa(), cpu.threads(), !self.patches.last, shape);
        let lanes = weights.lanes.next_multiple_of(cut.lane_tile);
        let panels = Panels { width: cut.lane_tile, depth: cut.depth, terms, lanes };
        let counts = [pixels.div_ceil(cut.pixels), weights.lanes.div_ceil(cut.lanes)];
        let y = Shared::new(y);
        with_buffer(panels.len(weights.groups), |packed| {
            let packed = Shared::new(packed);
            let parts = Parts { product: self, cpu, cut, panels, packed, y };
            let stages = [panels.parts(weights.groups), weights.groups * counts[0] * counts[1]];
            cpu.stages(cpu.threads(), &stages, |stage, part| {
                if stage == 0 {
                    // SAFETY: `stages` does each part once, and the packed weights are read in a later stage.
                    unsafe { weights.pack(cpu.arch(), &panels, part, packed) };
                    return;
                }
                let (group, rest) = (part / (counts[0] * counts[1]), part % (counts[0] * counts[1]));
                let range =
                    |index: usize, size: usize, all: usize| index * size..((index + 1) * size).min(all);
                let pixels = range(rest / counts[1], cut.pixels, pixels);
                let lanes = range(rest % counts[1], cut.lanes, weights.lanes);
                // SAFETY: each part is done once, and no two have both a pixel and a lane in common; the stage before is
                // over.
                unsafe { parts.part(group, pixels, lanes) };
            });
        });
    }
}

impl Parts<'_, '_> {
    /// Computes some pixels and lanes of a group.
    ///
    /// # Safety
    ///
    /// The weights are packed, and no other code reads or writes these elements of the output.
    unsafe fn part(&self, group: usize, pixels: Range<usize>, lanes: Range<usize>) {
        let (cut, patches) = (&self.cut, &self.product.patches);
        let rows = |terms: usize| if patches.last { (pixels.len(), terms) } else { (terms, pixels.len()) };
        let (most, longest) = rows(cut.depth);
        with_buffer(most * pitch(longest), |block| {
            for terms in self.panels.blocks() {
                let (count, row) = rows(terms.len());
                let pitch = pitch(row);
                let block = &mut block[..count * pitch];
                patches.fill(group, pixels.clone(), terms.clone(), pitch, block);
                for from in lanes.clone().step_by(cut.chunk) {
                    let chunk = from..(from + cut.chunk).min(lanes.end);
                    for pixel in pixels.clone().step_by(cut.pixel_tile) {
                        let count = cut.pixel_tile.min(pixels.end - pixel);
                        let at = pixel - pixels.start;
                        let (start, lane_stride, step_stride) =
                            if patches.last { (at * pitch, pitch, 1) } else { (at, 1, pitch) };
                        let strip =
                            Strip { data: block.get(start..).unwrap_or(&[]), lane_stride, step_stride };
                        // SAFETY: as the caller promises.
                        unsafe { self.tiles(group, pixel..pixel + count, chunk.clone(), &terms, strip) };
                    }
                }
            }
        });
    }

    /// Computes the tiles of some lanes, all of the same pixels.
    ///
    /// # Safety
    ///
    /// As for [`part`](Parts::part).
    unsafe fn tiles(
        &self,
        group: usize,
        pixels: Range<usize>,
        lanes: Range<usize>,
        terms: &Range<usize>,
        strip: Strip<'_>,
    ) {
        let (product, width, arch) = (self.product, self.cut.lane_tile, self.cpu.arch());
        let (places, last) = (&product.places, product.patches.last);
        let (col, channel) = (places.strides.col, places.strides.channel);
        let innermost = if last { channel } else { col };
        let place = places.offset(pixels.start);
        let even = innermost == 1 && places.is_even(pixels.start, pixels.len());
        // SAFETY: the weights are not packed any more, by the caller's promise.
        let packed = unsafe { self.packed.all() };
        let beta = if terms.start == 0 { 0.0 } else { 1.0 };
        let bias = product.bias.filter(|_| terms.start == 0);
        for lane in lanes.clone().step_by(width) {
            let count = width.min(lanes.end - lane);
            let panel = &packed[self.panels.at(group, terms, lane)..][..width * terms.len()];
            let panel = Strip { data: panel, lane_stride: 1, step_stride: width };
            let first = group * product.weights.lanes + lane;
            let bias = bias.map(|bias| &bias[first..first + count]);
            let store = Store { alpha: 1.0, beta, bias, relu: false };
            let start = place + first * channel;
            let (a, b, rows, cols) =
                if last { (strip, panel, pixels.len(), count) } else { (panel, strip, count, pixels.len()) };
            if even {
                let (row, col) = if last { (col, channel) } else { (channel, col) };
                // SAFETY: these pixels and lanes belong to this part alone.
                let c = unsafe { Window::over(self.y, start, rows, cols, row, col) };
                tile(arch, terms.len(), a, b, &c, rows, cols, &store);
                continue;
            }
            let mut sums = [0.0_f32; MOST];
            let used = &mut sums[..rows * cols];
            if let Ok(mut matrix) = MatMut::new(used, rows, cols) {
                let c = Window::new(&mut matrix);
                tile(arch, terms.len(), a, b, &c, rows, cols, &Store { beta: 0.0, ..store });
            }
            let (row, col) = if last { (cols, 1) } else { (1, cols) };
            for (at, pixel) in pixels.clone().enumerate() {
                let start = places.offset(pixel) + first * channel;
                for lane in 0..count {
                    // SAFETY: this pixel and this lane belong to this part alone.
                    let y = unsafe { &mut self.y.range(start + lane * channel, 1)[0] };
                    let sum = used[at * row + lane * col];
                    *y = if beta == 0.0 { sum } else { *y + sum };
                }
            }
        }
    }
}
