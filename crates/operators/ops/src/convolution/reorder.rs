//! The other layout, for convolutions that are faster there: operands are transposed, and the result is transposed
//! back.

use super::{Convolution, Layout, Sizes};
use crate::Cpu;
use crate::gemm::transpose;
use crate::shared::Shared;

/// Number of channels of a group from which a copy of a pixel's channels pays.
const FEW: usize = 16;

/// Number of pixels of an image up to which tiles across images cost more than transposing it.
const SMALL: usize = 256;

/// Columns of a part.
const COLUMNS: usize = 64;

impl Convolution {
    /// The same convolution in the other layout, where that is worth copies of image and output.
    pub(super) fn reordered(&self) -> Option<Convolution> {
        let Sizes { inputs, outputs, groups, layout, .. } = self.sizes;
        let few = inputs / groups < FEW || (groups > 1 && outputs / groups < FEW);
        let wanted = !self.is_depthwise()
            && match layout {
                // Copies of channels would be short.
                Layout::ChannelsLast => few,
                Layout::ChannelsFirst => !few && outputs / groups >= FEW && self.is_scattered(),
            };
        let layout = match layout {
            Layout::ChannelsFirst => Layout::ChannelsLast,
            Layout::ChannelsLast => Layout::ChannelsFirst,
        };
        wanted.then_some(Convolution { sizes: Sizes { layout, ..self.sizes }, ..*self })
    }

    /// Whether, with channels first, the pixels of a tile are in many pieces: in several images, or apart.
    fn is_scattered(&self) -> bool {
        let Sizes { samples, kernel, stride, .. } = self.sizes;
        let small = samples > 1 && self.output[0] * self.output[1] <= SMALL;
        small || (stride != [1, 1] && kernel != [1, 1])
    }

    /// Input, output and weights as matrices to transpose: their number, rows, columns.
    pub(super) fn matrices(&self) -> [[usize; 3]; 3] {
        let Sizes { samples, inputs, outputs, groups, image, kernel, layout, .. } = self.sizes;
        let matrix = |count, [rows, cols]: [usize; 2], channels| match layout {
            Layout::ChannelsFirst => [count, channels, rows * cols],
            Layout::ChannelsLast => [count, rows * cols, channels],
        };
        [
            matrix(samples, image, inputs),
            matrix(samples, self.output, outputs),
            matrix(outputs, kernel, inputs / groups),
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
