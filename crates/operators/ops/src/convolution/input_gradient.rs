//! The gradient of the input, computed as a forward pass over the output's gradient.
//!
//! With strides, the pixels of the input that the same taps reach form one product; the number of products is the
//! product of the strides.

use super::layout::Strides;
use super::patches::Patches;
use super::pixels::{Grid, Places};
use super::product::Product;
use super::reorder::turn;
use super::weights::Weights;
use super::{Convolution, ConvolutionError, Layout};
use crate::Cpu;
use crate::gemm::with_buffer;

impl Convolution {
    /// Computes the gradient `dx` of the input, from that of the output, `dy`; shapes are as for
    /// [`forward`](Convolution::forward).
    ///
    /// # Errors
    ///
    /// An operand has another number of elements.
    pub fn input_gradient(
        &self,
        cpu: &Cpu,
        dy: &[f32],
        weight: &[f32],
        dx: &mut [f32],
    ) -> Result<(), ConvolutionError> {
        self.check_output("the gradient of the output", dy)?;
        self.check_weight("the weights", weight)?;
        self.check_input("the gradient of the input", dx)?;
        if let Some(other) = self.reordered() {
            let [image, output, kernel] = self.matrices();
            return with_buffer(dy.len(), |turned| {
                turn(cpu, output, dy, turned);
                with_buffer(weight.len(), |turned_weight| {
                    turn(cpu, kernel, weight, turned_weight);
                    with_buffer(dx.len(), |turned_dx| {
                        other.input_gradient(cpu, turned, turned_weight, turned_dx)?;
                        turn(cpu, [image[0], image[2], image[1]], turned_dx, dx);
                        Ok(())
                    })
                })
            });
        }
        let [down, across] = [0, 1].map(|axis| self.sizes.stride[axis].min(self.sizes.image[axis]));
        for (row, col) in (0..down).flat_map(|row| (0..across).map(move |col| (row, col))) {
            self.phase([row, col], dy, weight).run(cpu, dx);
        }
        Ok(())
    }

    /// The product for each stride-th pixel of the input from `first` on.
    fn phase<'a>(&self, first: [usize; 2], dy: &'a [f32], weight: &'a [f32]) -> Product<'a> {
        let sizes = self.sizes();
        let last = sizes.layout == Layout::ChannelsLast;
        let whole = sizes.input_strides();
        let rows = [0, 1].map(|axis| (sizes.image[axis] - first[axis]).div_ceil(sizes.stride[axis]));
        let places = Places {
            grid: Grid { size: [sizes.samples, rows[0], rows[1]] },
            start: first[0] * whole.row + first[1] * whole.col,
            strides: Strides { row: whole.row * sizes.stride[0], col: whole.col * sizes.stride[1], ..whole },
        };
        // The taps that reach these pixels, and the pixels of the output that they belong to.
        let reach = [0, 1].map(|axis| {
            let stride = sizes.stride[axis] as isize;
            let from = (first[axis] + sizes.padding[axis]) as isize;
            let seen = |tap: usize| (tap, from - (tap * sizes.dilation[axis]) as isize);
            let of = (0..sizes.kernel[axis]).map(seen).filter(|(_, at)| at % stride == 0);
            of.map(|(tap, at)| (tap, at / stride)).collect::<Vec<_>>()
        });
        let (inputs, outputs) = (sizes.inputs / sizes.groups, sizes.outputs / sizes.groups);
        let patches = Patches {
            data: dy,
            strides: sizes.layout.strides(sizes.outputs, self.output),
            last,
            image: self.output,
            channels: outputs,
            grid: places.grid,
            step: [1, 1],
            taps: [0, 1].map(|axis| reach[axis].iter().map(|&(_, at)| at).collect()),
            ones: false,
        };
        let strides = sizes.layout.strides(inputs, sizes.kernel);
        let taps = || {
            let [rows, cols] = &reach;
            rows.iter()
                .flat_map(move |row| cols.iter().map(move |col| row.0 * strides.row + col.0 * strides.col))
        };
        let channels = || (0..outputs).map(|output| output * strides.outer);
        let terms = if last {
            taps().flat_map(|tap| channels().map(move |channel| channel + tap)).collect()
        } else {
            channels().flat_map(|channel| taps().map(move |tap| channel + tap)).collect()
        };
        let weights = Weights {
            data: weight,
            groups: sizes.groups,
            group_stride: outputs * strides.outer,
            lanes: inputs,
            lane_stride: strides.channel,
            terms,
            bias: None,
        };
        Product { patches, weights, bias: None, places }
    }
}
