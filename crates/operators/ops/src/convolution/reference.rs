//! The definition, in double precision: the reference for tests of the fast versions.

use super::{Convolution, Layout};

/// Index of (outer, channel, row, column) in a tensor of these channels and this image.
fn at(layout: Layout, channels: usize, image: [usize; 2], [n, c, h, w]: [usize; 4]) -> usize {
    let strides = layout.strides(channels, image);
    n * strides.outer + c * strides.channel + h * strides.row + w * strides.col
}

/// Calls `work` with the indices in output, weights and input of each product.
fn each(of: &Convolution, mut work: impl FnMut(usize, usize, usize)) {
    let (sizes, output) = (of.sizes(), of.output());
    let (inputs, outputs) = (sizes.inputs / sizes.groups, sizes.outputs / sizes.groups);
    let pixel = |axis: usize, place: usize, tap: usize| {
        let at = place * sizes.stride[axis] + tap * sizes.dilation[axis];
        at.checked_sub(sizes.padding[axis]).filter(|&at| at < sizes.image[axis])
    };
    for n in 0..sizes.samples {
        for o in 0..sizes.outputs {
            for (p, q) in (0..output[0]).flat_map(|p| (0..output[1]).map(move |q| (p, q))) {
                let y = at(sizes.layout, sizes.outputs, output, [n, o, p, q]);
                for c in 0..inputs {
                    for (i, j) in (0..sizes.kernel[0]).flat_map(|i| (0..sizes.kernel[1]).map(move |j| (i, j)))
                    {
                        let (Some(h), Some(w)) = (pixel(0, p, i), pixel(1, q, j)) else { continue };
                        let weight = at(sizes.layout, inputs, sizes.kernel, [o, c, i, j]);
                        let channel = o / outputs * inputs + c;
                        work(y, weight, at(sizes.layout, sizes.inputs, sizes.image, [n, channel, h, w]));
                    }
                }
            }
        }
    }
}

/// Computes the output of operands shaped as for [`Convolution::forward`].
#[must_use]
pub fn forward(of: &Convolution, x: &[f64], weight: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let mut out = vec![0.0; of.output_len()];
    each(of, |y, w, at| out[y] += weight[w] * x[at]);
    if let Some(bias) = bias {
        let (channels, pixels) = (of.sizes().outputs, of.output().iter().product::<usize>());
        for (at, out) in out.iter_mut().enumerate() {
            let channel = match of.sizes().layout {
                Layout::ChannelsFirst => at / pixels % channels,
                Layout::ChannelsLast => at % channels,
            };
            *out += bias[channel];
        }
    }
    out
}

/// Computes the gradient of the input, from that of the output.
#[must_use]
pub fn input_gradient(of: &Convolution, dy: &[f64], weight: &[f64]) -> Vec<f64> {
    let mut dx = vec![0.0; of.input_len()];
    each(of, |y, w, at| dx[at] += weight[w] * dy[y]);
    dx
}

/// Computes the gradient of the weights, from that of the output.
#[must_use]
pub fn weight_gradient(of: &Convolution, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let mut dweight = vec![0.0; of.weight_len()];
    each(of, |y, w, at| dweight[w] += dy[y] * x[at]);
    dweight
}

/// Computes the gradient of the bias: the sum of each output channel.
#[must_use]
pub fn bias_gradient(of: &Convolution, dy: &[f64]) -> Vec<f64> {
    let (channels, pixels) = (of.sizes().outputs, of.output().iter().product::<usize>());
    let mut sums = vec![0.0; channels];
    for (at, value) in dy.iter().enumerate() {
        let channel = match of.sizes().layout {
            Layout::ChannelsFirst => at / pixels % channels,
            Layout::ChannelsLast => at % channels,
        };
        sums[channel] += value;
    }
    sums
}
