//! Convolution of images in two dimensions, and its gradients, as tiled matrix products.
//!
//! ```text
//! y[n, o, p, q] = bias[o] + sum over c, i, j of  w[o, c, i, j] x[n, c, p s + i d - pad, q s + j d - pad]
//! ```
//!
//! It is a product of the weights, `[O, K]`, with the patches of the image, `[K, N P Q]`, where `K = C KH KW`. The matrix
//! of patches, up to `KH KW` times as large as the image, is never stored: a thread copies the patches of some
//! pixels, some terms at a time, into a block that stays in its second-level cache, and the register tiles of
//! [`gemm`](crate::gemm) multiply it with packed weights.
//!
//! | pass | rows of the product | columns | terms of a sum |
//! |---|---|---|---|
//! | forward | output channels | output pixels | input channels and taps |
//! | gradient of the input | input channels | input pixels | output channels and taps |
//! | gradient of the weights | input channels and taps | output channels | output pixels |
//!
//! With channels last, rows and columns of the first two passes are exchanged. With a stride of s, the gradient of the
//! input is s x s products, one for the pixels that the same taps reach. Depthwise convolutions, with one channel a
//! group, are not products; vectors of their sums stay in registers over all taps. Other groups of few channels, and
//! images of few channels, are computed with channels first. Small images of many channels, and those with a stride,
//! are computed with channels last. In the other layout, image and output are transposed into that order and back.
//!
//! Each sum is added in an order that depends on the sizes alone: results do not depend on the number of threads.
//!
//! ```
//! use steptime_ops::Cpu;
//! use steptime_ops::convolution::{Convolution, Sizes};
//!
//! let sizes = Sizes { image: [3, 3], kernel: [2, 2], ..Sizes::default() };
//! let of = Convolution::new(sizes)?;
//! let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let mut y = [0.0; 4];
//! of.forward(&Cpu::new(1).unwrap(), &x, &[1.0, 0.0, 0.0, 1.0], Some(&[0.5]), &mut y)?;
//! assert_eq!(y, [6.5, 8.5, 12.5, 14.5]);
//! # Ok::<(), steptime_ops::convolution::ConvolutionError>(())
//! ```

mod bias_gradient;
mod cut;
mod depthwise;
mod error;
mod forward;
mod input_gradient;
mod layout;
mod patches;
mod pixels;
mod product;
pub mod reference;
mod reorder;
mod sizes;
mod vector;
mod weight_gradient;
mod weights;

pub use error::ConvolutionError;
pub use layout::Layout;
pub use sizes::Sizes;

use sizes::elements;

/// A convolution of sizes that fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolution {
    sizes: Sizes,
    output: [usize; 2],
    lens: [usize; 3],
}

impl Convolution {
    /// Checks the sizes.
    ///
    /// # Errors
    ///
    /// A size other than the number of samples and the padding is 0, groups do not divide the channels, the kernel is
    /// larger than the image with its padding, or an operand would not fit into memory.
    pub fn new(sizes: Sizes) -> Result<Convolution, ConvolutionError> {
        let output = sizes.output()?;
        let lens = [
            elements("the input", sizes.input_shape())?,
            elements("the weights", sizes.weight_shape())?,
            elements("the output", sizes.layout.shape(sizes.samples, sizes.outputs, output))?,
        ];
        Ok(Convolution { sizes, output, lens })
    }

    /// Its sizes.
    #[must_use]
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Pixels of the output, P and Q.
    #[must_use]
    pub fn output(&self) -> [usize; 2] {
        self.output
    }

    /// The shape of the output, in the order of memory.
    #[must_use]
    pub fn output_shape(&self) -> [usize; 4] {
        self.sizes.layout.shape(self.sizes.samples, self.sizes.outputs, self.output)
    }

    /// Elements of the input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.lens[0]
    }

    /// Elements of the weights.
    #[must_use]
    pub fn weight_len(&self) -> usize {
        self.lens[1]
    }

    /// Elements of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.lens[2]
    }

    /// Floating-point operations of each of the three passes: the forward pass and the gradients of input and weights.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let terms = (self.lens[1] / self.sizes.outputs) as u64;
        2 * self.lens[2] as u64 * terms
    }

    fn check(&self, what: &'static str, found: usize, shape: &[usize]) -> Result<(), ConvolutionError> {
        let expected = shape.iter().product();
        if found == expected {
            return Ok(());
        }
        Err(ConvolutionError::Length { what, found, expected, shape: shape.to_vec() })
    }

    fn check_input(&self, what: &'static str, x: &[f32]) -> Result<(), ConvolutionError> {
        self.check(what, x.len(), &self.sizes.input_shape())
    }

    fn check_weight(&self, what: &'static str, weight: &[f32]) -> Result<(), ConvolutionError> {
        self.check(what, weight.len(), &self.sizes.weight_shape())
    }

    fn check_output(&self, what: &'static str, y: &[f32]) -> Result<(), ConvolutionError> {
        self.check(what, y.len(), &self.output_shape())
    }

    fn check_bias(&self, what: &'static str, bias: &[f32]) -> Result<(), ConvolutionError> {
        self.check(what, bias.len(), &[self.sizes.outputs])
    }
}
