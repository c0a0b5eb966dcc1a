//! Copies an operand into panels: the order in which the register tile reads it, from start to end.
//!
//! A panel of width w holds, for each step of k, the w elements next to each other; lanes past the end are zeros.
//! Conversion to `f32` and the gradient of an activation happen on the way.

use std::ops::Range;

use super::kernel::{Across, Loop, copy_lanes, transpose, widen};
use super::{Activation, Element, MatRef};
use crate::arch::Arch;
use crate::shared::Shared;

/// Number of panels that are packed at the same time.
const MOST_PANELS: usize = 8;

/// Number of steps that are converted at a time before they are transposed.
const STAGE: usize = 64;

/// An operand to pack: element (lane, step) of `view`, multiplied by the slope of an activation where there is one.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, T> {
    pub(crate) view: MatRef<'a, T>,
    pub(crate) gate: Option<Gate<'a>>,
}

/// The outputs of an activation, in the shape of their view.
#[derive(Clone, Copy)]
pub(crate) struct Gate<'a> {
    pub(crate) outputs: MatRef<'a>,
    pub(crate) activation: Activation,
}

impl<'a, T: Element> Source<'a, T> {
    pub(crate) fn plain(view: MatRef<'a, T>) -> Source<'a, T> {
        Source { view, gate: None }
    }

    /// Exchanges lanes and steps.
    pub(crate) fn t(self) -> Source<'a, T> {
        let gate = self.gate.map(|gate| Gate { outputs: gate.outputs.t(), ..gate });
        Source { view: self.view.t(), gate }
    }

    /// Packs adjacent panels, one after the other, each into `out[step * width + lane]`.
    pub(crate) fn pack(
        &self,
        arch: Arch,
        lanes: Range<usize>,
        steps: Range<usize>,
        width: usize,
        out: &mut [f32],
    ) {
        let size = width * steps.len();
        if lanes.is_empty() || size == 0 {
            return;
        }
        let gated = |holds: fn(&MatRef<'_>) -> bool| self.gate.is_none_or(|gate| holds(&gate.outputs));
        let by_lane = self.view.row_stride() == 1 && gated(|outputs| outputs.row_stride() == 1);
        let by_step = self.view.col_stride() == 1 && gated(|outputs| outputs.col_stride() == 1);
        let data = T::as_f32(self.view.tail(lanes.start, steps.start));
        if let Some(data) = data.filter(|_| by_lane) {
            let gate = self.gate.map(|gate| {
                let outputs = gate.outputs.tail(lanes.start, steps.start);
                (outputs, gate.outputs.col_stride(), gate.activation)
            });
            let across = Across { data, step_stride: self.view.col_stride(), gate };
            return copy_lanes(arch, across, lanes.len(), steps.len(), width, out);
        }
        for (from, out) in lanes.clone().step_by(width).zip(out.chunks_exact_mut(size)) {
            let lanes = from..(from + width).min(lanes.end);
            if by_step {
                self.pack_transposed(arch, lanes, steps.clone(), width, out);
            } else {
                for (step, out) in steps.clone().zip(out.chunks_exact_mut(width)) {
                    for (at, out) in out.iter_mut().enumerate() {
                        *out = if at < lanes.len() { self.value(lanes.start + at, step) } else { 0.0 };
                    }
                }
            }
        }
    }

    /// Packs one panel of an operand whose steps are next to each other.
    fn pack_transposed(
        &self,
        arch: Arch,
        lanes: Range<usize>,
        steps: Range<usize>,
        width: usize,
        out: &mut [f32],
    ) {
        if let (Some(data), None) = (T::as_f32(self.view.tail(lanes.start, steps.start)), self.gate) {
            return transpose(arch, data, self.view.row_stride(), lanes.len(), steps.len(), width, out);
        }
        super::buffer::with_buffer(width * STAGE, |stage| {
            for from in steps.clone().step_by(STAGE) {
                let count = (steps.end - from).min(STAGE);
                widen(arch, Convert { source: self, lanes: lanes.clone(), from, count, stage });
                let out = &mut out[(from - steps.start) * width..][..count * width];
                transpose(arch, stage, STAGE, lanes.len(), count, width, out);
            }
        });
    }

    /// Returns one element.
    fn value(&self, lane: usize, step: usize) -> f32 {
        let mut value = [self.view.at(lane, step).to_f32()];
        if let Some(gate) = self.gate {
            gate.activation.scale(&mut value, &[gate.outputs.at(lane, step)]);
        }
        value[0]
    }

    /// Sums each column.
    pub(crate) fn sum_columns(&self, sums: &mut [f32]) {
        sums.fill(0.0);
        for row in 0..self.view.rows() {
            sums.iter_mut().enumerate().for_each(|(col, sum)| *sum += self.value(row, col));
        }
    }
}

/// Packing of an operand into panels, in the order: block of steps, panel, step, lane. Its parts may be packed
/// concurrently.
pub(crate) struct Packing<'a, T> {
    arch: Arch,
    source: Source<'a, T>,
    lanes: Range<usize>,
    /// Number of lanes of a panel.
    panel: usize,
    /// Number of all steps, and of those of a block.
    steps: (usize, usize),
    /// Number of panels of a part: several, so that rows are read in long runs, but few enough that all threads get
    /// parts.
    group: usize,
    out: Shared<'a, f32>,
}

impl<'a, T: Element> Packing<'a, T> {
    /// Packs the lanes `lanes` of `source` into `out`.
    pub(crate) fn new(
        arch: Arch,
        source: Source<'a, T>,
        lanes: Range<usize>,
        panel: usize,
        steps: (usize, usize),
        threads: usize,
        out: &'a mut [f32],
    ) -> Packing<'a, T> {
        let (panels, blocks) = (lanes.len().div_ceil(panel), steps.0.div_ceil(steps.1));
        let group = (panels * blocks / (2 * threads)).clamp(1, MOST_PANELS);
        Packing { arch, source, lanes, panel, steps, group, out: Shared::new(out) }
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.lanes.len().div_ceil(self.panel).div_ceil(self.group) * self.blocks()
    }

    fn blocks(&self) -> usize {
        self.steps.0.div_ceil(self.steps.1)
    }

    /// Packs one part. Parts of the same lanes are consecutive.
    ///
    /// # Safety
    ///
    /// No other call packs it at the same time, and nothing reads it.
    pub(crate) unsafe fn part(&self, part: usize) {
        let (group, block) = (part / self.blocks(), part % self.blocks());
        let (all, most) = self.steps;
        let steps = block * most..((block + 1) * most).min(all);
        let panels = self.lanes.len().div_ceil(self.panel);
        let first = group * self.group;
        let count = self.group.min(panels - first);
        let size = self.panel * steps.len();
        let width = panels * self.panel;
        // SAFETY: blocks of steps are stored one after the other, `width` lanes each, and so are groups of panels in a
        // block: no two parts overlap.
        let out = unsafe { self.out.range(width * steps.start + first * size, count * size) };
        let from = self.lanes.start + first * self.panel;
        let lanes = from..(from + count * self.panel).min(self.lanes.end);
        self.source.pack(self.arch, lanes, steps, self.panel, out);
    }

    /// Buffer of the panels.
    pub(crate) fn out(&self) -> Shared<'a, f32> {
        self.out
    }
}

/// Converts the steps of each lane, lane by lane, for the transpose.
struct Convert<'s, 'a, T> {
    source: &'s Source<'a, T>,
    lanes: Range<usize>,
    from: usize,
    count: usize,
    stage: &'s mut [f32],
}

impl<T: Element> Loop for Convert<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for (lane, stage) in self.lanes.zip(self.stage.chunks_exact_mut(STAGE)) {
            let out = &mut stage[..self.count];
            let values = &self.source.view.tail(lane, self.from)[..self.count];
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = value.to_f32());
            if let Some(gate) = self.source.gate {
                gate.activation.scale(out, &gate.outputs.tail(lane, self.from)[..self.count]);
            }
        }
    }
}
