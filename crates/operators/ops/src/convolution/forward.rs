//! The forward pass.

use super::patches::Patches;
use super::pixels::{Grid, Places};
use super::product::Product;
use super::reorder::turn;
use super::weights::Weights;
use super::{Convolution, ConvolutionError, Layout};
use crate::Cpu;
use crate::gemm::with_buffer;

impl Convolution {
    /// Computes `y = x * weight + bias`. `x` is `[N, C, H, W]`, `weight` is `[O, C / groups, KH, KW]`, `y` is `[N, O,
    /// P, Q]`, or their order with channels last, see [`Layout`]; `bias` has O elements.
    ///
    /// # Errors
    ///
    /// An operand has another number of elements.
    pub fn forward(
        &self,
        cpu: &Cpu,
        x: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) -> Result<(), ConvolutionError> {
        self.check_input("the input", x)?;
        self.check_weight("the weights", weight)?;
        self.check_output("the output", y)?;
        bias.map_or(Ok(()), |bias| self.check_bias("the bias", bias))?;
        let sizes = self.sizes();
        if let Some(other) = self.reordered() {
            let [image, output, kernel] = self.matrices();
            return with_buffer(x.len(), |turned| {
                turn(cpu, image, x, turned);
                with_buffer(weight.len(), |turned_weight| {
                    turn(cpu, kernel, weight, turned_weight);
                    with_buffer(y.len(), |turned_y| {
                        other.forward(cpu, turned, turned_weight, bias, turned_y)?;
                        turn(cpu, [output[0], output[2], output[1]], turned_y, y);
                        Ok(())
                    })
                })
            });
        }
        let last = sizes.layout == Layout::ChannelsLast;
        // Where channels are rows of tiles, the bias is one more term: tiles add one to columns only.
        let (bias, term) = if last { (bias, None) } else { (None, bias) };
        let places = Places {
            grid: self.output_grid(),
            start: 0,
            strides: sizes.layout.strides(sizes.outputs, self.output),
        };
        let mut patches = self.input_patches(x);
        patches.ones = term.is_some();
        let (lanes, terms) = (sizes.outputs / sizes.groups, patches.terms());
        let weights = Weights {
            data: weight,
            groups: sizes.groups,
            group_stride: lanes * terms,
            lanes,
            lane_stride: terms,
            terms: (0..terms).collect(),
            bias: term,
        };
        Product { patches, weights, bias, places }.run(cpu, y);
        Ok(())
    }

    /// All pixels of the output.
    pub(super) fn output_grid(&self) -> Grid {
        Grid { size: [self.sizes.samples, self.output[0], self.output[1]] }
    }

    /// Patches of the input for the pixels of the output; terms are in the order of the weights in memory.
    pub(super) fn input_patches<'a>(&self, x: &'a [f32]) -> Patches<'a> {
        let sizes = self.sizes();
        let taps = [0, 1].map(|axis| {
            let tap = |at: usize| (at * sizes.dilation[axis]) as isize - sizes.padding[axis] as isize;
            (0..sizes.kernel[axis]).map(tap).collect()
        });
        Patches {
            data: x,
            strides: sizes.input_strides(),
            last: sizes.layout == Layout::ChannelsLast,
            image: sizes.image,
            channels: sizes.inputs / sizes.groups,
            grid: self.output_grid(),
            step: sizes.stride,
            taps,
            ones: false,
        }
    }
}
