//! The gradient of the weights: products whose sums go over all pixels of the output.
//!
//! Sums are split into stretches of pixels, few where there are many weights. A part of the work adds a stretch, for
//! some terms, into its own sums; then the stretches are added in order. Stretches depend on the sizes alone, and so
//! does the result.

use std::ops::Range;

use super::cut::{even, pitch};
use super::patches::Patches;
use super::reorder::turn;
use super::{Convolution, ConvolutionError, Layout, depthwise};
use crate::Cpu;
use crate::arch::Arch;
use crate::gemm::{
    Across, Machine, Store, Strip, Window, copy_lanes, tile, tile_cols, tile_rows, transpose, with_buffer,
};
use crate::shared::Shared;

/// Largest number of pixels that are added before sums go back to memory.
const MOST_PIXELS: usize = 256;

/// Number of parts to aim for, so that each thread gets some.
const PARTS: usize = 64;

/// Number of terms of a part when counting these parts.
const TERMS: usize = 256;

/// Largest number of floats of all stretches' sums; a single stretch may have more.
const MOST_SUMS: usize = 8 << 20;

/// Output channels that are added up together: a cache line.
const CHANNELS: usize = 16;

impl Convolution {
    /// Computes the gradient `dweight` of the weights, from that of the output, `dy`; shapes are as for
    /// [`forward`](Convolution::forward).
    ///
    /// # Errors
    ///
    /// An operand has another number of elements.
    pub fn weight_gradient(
        &self,
        cpu: &Cpu,
        x: &[f32],
        dy: &[f32],
        dweight: &mut [f32],
    ) -> Result<(), ConvolutionError> {
        self.check_input("the input", x)?;
        self.check_output("the gradient of the output", dy)?;
        self.check_weight("the gradient of the weights", dweight)?;
        if let Some(other) = self.reordered() {
            let [image, output, kernel] = self.matrices();
            return with_buffer(x.len(), |turned| {
                turn(cpu, image, x, turned);
                with_buffer(dy.len(), |turned_dy| {
                    turn(cpu, output, dy, turned_dy);
                    with_buffer(dweight.len(), |turned_dweight| {
                        other.weight_gradient(cpu, turned, turned_dy, turned_dweight)?;
                        turn(cpu, [kernel[0], kernel[2], kernel[1]], turned_dweight, dweight);
                        Ok(())
                    })
                })
            });
        }
        let patches = self.input_patches(x);
        let (pixels, terms) = (patches.grid.count(), patches.terms());
        if pixels == 0 {
            dweight.fill(0.0);
            return Ok(());
        }
        if self.is_depthwise() {
            let strides = self.sizes.layout.strides(self.sizes.outputs, self.output);
            depthwise::weight_gradient(cpu, &patches, dy, strides, dweight);
            return Ok(());
        }
        let (groups, outputs) = (self.sizes.groups, self.sizes.outputs / self.sizes.groups);
        // Number of pixels of a block, and of a stretch: whole blocks.
        let depth = even(pixels, MOST_PIXELS);
        let blocks = pixels.div_ceil(depth);
        let all = groups * terms * outputs;
        let stretches = PARTS.div_ceil(groups * terms.div_ceil(TERMS)).min(MOST_SUMS / all).clamp(1, blocks);
        let stretch = blocks.div_ceil(stretches) * depth;
        let stretches = pixels.div_ceil(stretch);
        let isa = cpu.isa();
        // Number of terms of a part: their block stays in the second-level cache.
        let most = Machine::detect(isa).caches[1].bytes / 2 / size_of::<f32>() / pitch(depth);
        let width = even(terms, most.clamp(TERMS, 2 * TERMS));
        let pieces = terms.div_ceil(width);
        let strips = outputs.div_ceil(CHANNELS);
        with_buffer(stretches * all, |sums| {
            let sums = Shared::new(sums);
            let dweight = Shared::new(dweight);
            let stages = [groups * stretches * pieces, groups * strips];
            let work = Stretches { of: self, cpu, patches: &patches, dy, depth, stretches, sums };
            cpu.stages(cpu.threads(), &stages, |stage, part| {
                if stage == 0 {
                    let (group, rest) = (part / (stretches * pieces), part % (stretches * pieces));
                    let (at, piece) = (rest / pieces, rest % pieces);
                    let pixels = at * stretch..((at + 1) * stretch).min(pixels);
                    let terms = piece * width..((piece + 1) * width).min(terms);
                    // SAFETY: each part is done once, and has a stretch and terms by its number.
                    unsafe { work.add(group, at, pixels, terms) };
                } else {
                    let (group, strip) = (part / strips, part % strips);
                    let outputs = strip * CHANNELS..((strip + 1) * CHANNELS).min(outputs);
                    // SAFETY: the stage before is over; each part has output channels by its number.
                    unsafe { work.add_up(group, outputs, dweight) };
                }
            });
        });
        Ok(())
    }
}

/// Common data of the parts. Sums are `[groups, stretches, terms, outputs]`.
struct Stretches<'p, 'a> {
    of: &'p Convolution,
    cpu: &'p Cpu,
    patches: &'p Patches<'a>,
    dy: &'p [f32],
    depth: usize,
    stretches: usize,
    sums: Shared<'p, f32>,
}

impl Stretches<'_, '_> {
    fn outputs(&self) -> usize {
        self.of.sizes.outputs / self.of.sizes.groups
    }

    /// Adds a stretch of pixels, for some terms.
    ///
    /// # Safety
    ///
    /// No other code uses the sums of this stretch and these terms.
    unsafe fn add(&self, group: usize, at: usize, pixels: Range<usize>, terms: Range<usize>) {
        let (patches, arch, outputs) = (self.patches, self.cpu.arch(), self.outputs());
        let (height, width) = (even(terms.len(), tile_rows(arch.isa())), tile_cols(arch.isa()));
        let rows = |pixels: usize| if patches.last { (pixels, terms.len()) } else { (terms.len(), pixels) };
        let (most, longest) = rows(self.depth);
        let start = (group * self.stretches + at) * patches.terms() * outputs;
        with_buffer(outputs.next_multiple_of(width) * self.depth, |panels| {
            with_buffer(most * pitch(longest), |block| {
                for from in pixels.clone().step_by(self.depth) {
                    let steps = from..(from + self.depth).min(pixels.end);
                    let (count, row) = rows(steps.len());
                    let pitch = pitch(row);
                    let block = &mut block[..count * pitch];
                    patches.fill(group, steps.clone(), terms.clone(), pitch, block);
                    let panels = &mut panels[..outputs.next_multiple_of(width) * steps.len()];
                    self.pack(arch, group, steps.clone(), width, panels);
                    let beta = if from == pixels.start { 0.0 } else { 1.0 };
                    let store = Store { alpha: 1.0, beta, bias: None, relu: false };
                    let (lane_stride, step_stride) = if patches.last { (1, pitch) } else { (pitch, 1) };
                    for output in (0..outputs).step_by(width) {
                        let data = &panels[output * steps.len()..][..width * steps.len()];
                        let b = Strip { data, lane_stride: 1, step_stride: width };
                        for term in terms.clone().step_by(height) {
                            let data = &block[(term - terms.start) * lane_stride..];
                            let a = Strip { data, lane_stride, step_stride };
                            let (rows, cols) = (height.min(terms.end - term), width.min(outputs - output));
                            let place = start + term * outputs + output;
                            // SAFETY: sums of this stretch and these terms, which no other code uses.
                            let c = unsafe { Window::over(self.sums, place, rows, cols, outputs, 1) };
                            tile(arch, steps.len(), a, b, &c, rows, cols, &store);
                        }
                    }
                }
            });
        });
    }

    /// Packs the gradients of some pixels into panels of output channels.
    fn pack(&self, arch: Arch, group: usize, pixels: Range<usize>, width: usize, panels: &mut [f32]) {
        let (sizes, outputs) = (&self.of.sizes, self.outputs());
        let strides = sizes.layout.strides(sizes.outputs, self.of.output);
        let first = group * outputs;
        if sizes.layout == Layout::ChannelsLast {
            let data = &self.dy[pixels.start * strides.col + first..];
            let across = Across { data, step_stride: strides.col, gate: None };
            return copy_lanes(arch, across, outputs, pixels.len(), width, panels);
        }
        // Within an image, pixels are neighbours.
        let image = self.of.output[0] * self.of.output[1];
        for (from, panel) in (0..outputs).step_by(width).zip(panels.chunks_exact_mut(width * pixels.len())) {
            let (lanes, mut pixel, mut out) = (width.min(outputs - from), pixels.start, panel);
            while pixel < pixels.end {
                let count = (image - pixel % image).min(pixels.end - pixel);
                let place = pixel / image * strides.outer + (first + from) * strides.channel + pixel % image;
                let (now, rest) = out.split_at_mut(count * width);
                transpose(arch, &self.dy[place..], strides.channel, lanes, count, width, now);
                (out, pixel) = (rest, pixel + count);
            }
        }
    }

    /// Adds the stretches for some output channels.
    ///
    /// # Safety
    ///
    /// The sums are not written any more, and no other code uses the gradients of these channels.
    unsafe fn add_up(&self, group: usize, outputs: Range<usize>, dweight: Shared<'_, f32>) {
        let (all, terms) = (self.outputs(), self.patches.terms());
        // SAFETY: as the caller promises.
        let sums = unsafe { self.sums.all() };
        for term in 0..terms {
            let mut total = [0.0_f32; CHANNELS];
            let total = &mut total[..outputs.len()];
            for at in 0..self.stretches {
                let place = ((group * self.stretches + at) * terms + term) * all + outputs.start;
                total.iter_mut().zip(&sums[place..]).for_each(|(total, sum)| *total += sum);
            }
            for (output, &total) in outputs.clone().zip(&*total) {
                // SAFETY: a gradient of these channels.
                unsafe { dweight.range((group * all + output) * terms + term, 1)[0] = total };
            }
        }
    }
}
