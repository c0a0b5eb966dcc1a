//! Weights in panels for the register tiles.

use std::ops::Range;

use crate::arch::Arch;
use crate::gemm::transpose;
use crate::shared::Shared;

/// Number of panels that are packed at a time.
const PANELS: usize = 4;

/// The matrix of weights of each group: element (lane, term) is at `group * group_stride + lane * lane_stride +
/// terms[term]`.
#[derive(Debug)]
pub(super) struct Weights<'a> {
    pub(super) data: &'a [f32],
    pub(super) groups: usize,
    pub(super) group_stride: usize,
    pub(super) lanes: usize,
    pub(super) lane_stride: usize,
    pub(super) terms: Vec<usize>,
    /// One more term after the last: one element for each lane of each group.
    pub(super) bias: Option<&'a [f32]>,
}

/// Order of weights in panels: block of terms, panel, term, lane, of each group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panels {
    pub(super) width: usize,
    /// Largest number of terms of a block.
    pub(super) depth: usize,
    /// Number of all terms, and of lanes in whole panels.
    pub(super) terms: usize,
    pub(super) lanes: usize,
}

impl Panels {
    /// Number of floats of all groups.
    pub(super) fn len(&self, groups: usize) -> usize {
        groups * self.terms * self.lanes
    }

    /// Index of the panel that starts at a lane, for a block of terms.
    pub(super) fn at(&self, group: usize, terms: &Range<usize>, lane: usize) -> usize {
        (group * self.terms + terms.start) * self.lanes + lane * terms.len()
    }

    /// The blocks of terms; a single empty one if there are no terms.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> {
        let (all, depth) = (self.terms, self.depth);
        (0..all.max(1)).step_by(depth).map(move |from| from..(from + depth).min(all))
    }

    fn pieces(&self) -> [usize; 2] {
        [self.terms.div_ceil(self.depth), self.lanes.div_ceil(self.width * PANELS)]
    }

    /// Number of parts of packing.
    pub(super) fn parts(&self, groups: usize) -> usize {
        groups * self.pieces()[0] * self.pieces()[1]
    }
}

impl Weights<'_> {
    /// Packs one part.
    ///
    /// # Safety
    ///
    /// No other call packs it at the same time, and nothing reads it.
    pub(super) unsafe fn pack(&self, arch: Arch, panels: &Panels, part: usize, out: Shared<'_, f32>) {
        let [blocks, pieces] = panels.pieces();
        let (group, rest) = (part / (blocks * pieces), part % (blocks * pieces));
        let (block, piece) = (rest / pieces, rest % pieces);
        let terms = block * panels.depth..((block + 1) * panels.depth).min(panels.terms);
        let first = piece * PANELS * panels.width;
        for lane in (first..self.lanes.min(first + PANELS * panels.width)).step_by(panels.width) {
            // SAFETY: panels are stored one after the other, and each belongs to one part.
            let out = unsafe { out.range(panels.at(group, &terms, lane), panels.width * terms.len()) };
            let lanes = lane..(lane + panels.width).min(self.lanes);
            self.panel(arch, group, lanes, terms.clone(), panels.width, out);
        }
    }

    /// Packs one panel.
    fn panel(
        &self,
        arch: Arch,
        group: usize,
        lanes: Range<usize>,
        terms: Range<usize>,
        width: usize,
        out: &mut [f32],
    ) {
        let start = group * self.group_stride + lanes.start * self.lane_stride;
        let known = terms.start..terms.end.min(self.terms.len());
        let (plain, ones) = out.split_at_mut(known.len() * width);
        let offsets = &self.terms[known.clone()];
        let run = !offsets.is_empty() && offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if run {
            let data = &self.data[start + offsets[0]..];
            transpose(arch, data, self.lane_stride, lanes.len(), known.len(), width, plain);
        } else {
            for (&offset, out) in offsets.iter().zip(plain.chunks_exact_mut(width)) {
                let data = &self.data[start + offset..];
                let (used, rest) = out.split_at_mut(lanes.len());
                rest.fill(0.0);
                if self.lane_stride == 1 {
                    used.copy_from_slice(&data[..lanes.len()]);
                } else {
                    let lanes = data.iter().step_by(self.lane_stride);
                    used.iter_mut().zip(lanes).for_each(|(out, &value)| *out = value);
                }
            }
        }
        if let Some(bias) = self.bias.filter(|_| !ones.is_empty()) {
            let bias = &bias[group * self.lanes..][lanes];
            ones[..bias.len()].copy_from_slice(bias);
            ones[bias.len()..].fill(0.0);
        }
    }
}
