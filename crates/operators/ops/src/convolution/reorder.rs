//! Channels innermost and not: for groups of so few channels that copies of a pixel's channels do not pay.

use super::{Convolution, Layout, Sizes};
use crate::Cpu;
use crate::gemm::transpose;
use crate::shared::Shared;

/// Channels of a group from which on a copy pays.
const FEW: usize = 16;

/// Columns of a part.
const COLUMNS: usize = 64;

impl Convolution {
    /// The same with channels first, where that is worth copies of image and output.
    pub(super) fn reordered(&self) -> Option<Convolution> {
        let Sizes { inputs, outputs, groups, layout, .. } = self.sizes;
        let few = inputs / groups < FEW || (groups > 1 && outputs / groups < FEW);
        let sizes = Sizes { layout: Layout::ChannelsFirst, ..self.sizes };
        let wanted = layout == Layout::ChannelsLast && few && !self.is_depthwise();
        wanted.then_some(Convolution { sizes, ..*self })
    }

    /// Input, output and weights with channels last, as matrices to turn: how many, rows, columns.
    pub(super) fn matrices(&self) -> [[usize; 3]; 3] {
        let Sizes { samples, inputs, outputs, groups, image, kernel, .. } = self.sizes;
        let count = |[rows, cols]: [usize; 2]| rows * cols;
        [
            [samples, count(image), inputs],
            [samples, count(self.output), outputs],
            [outputs, count(kernel), inputs / groups],
        ]
    }

    /// Whether each group has one channel, in and out.
    pub(super) fn is_depthwise(&self) -> bool {
        self.sizes.groups == self.sizes.inputs && self.sizes.groups == self.sizes.outputs
    }
}

/// Transposes each of `count` matrices of `rows` x `cols`.
pub(super) fn turn(cpu: &Cpu, [count, rows, cols]: [usize; 3], from: &[f32], to: &mut [f32]) {
    let (to, pieces) = (Shared::new(to), cols.div_ceil(COLUMNS));
    if rows == 0 {
        return;
    }
    cpu.run(count * pieces, |part| {
        let (at, col) = (part / pieces, part % pieces * COLUMNS);
        let cols_now = COLUMNS.min(cols - col);
        // SAFETY: `run` does each part once, and each has rows of a result by its number.
        let out = unsafe { to.range((at * cols + col) * rows, cols_now * rows) };
        transpose(cpu.arch(), &from[at * rows * cols + col..], cols, rows, cols_now, rows, out);
    });
}
