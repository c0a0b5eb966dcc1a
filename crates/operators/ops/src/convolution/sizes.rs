//! The checked sizes of a convolution.

use super::layout::Strides;
use super::{ConvolutionError, Layout};

/// The sizes of a convolution. Pairs are (height, width).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of images, N.
    pub samples: usize,
    /// Channels of the input, C.
    pub inputs: usize,
    /// Channels of the output, O.
    pub outputs: usize,
    /// Pixels of the input, H and W.
    pub image: [usize; 2],
    /// Taps of the kernel, KH and KW.
    pub kernel: [usize; 2],
    /// Input pixels from one output pixel to the next.
    pub stride: [usize; 2],
    /// Zeros on each side of the image.
    pub padding: [usize; 2],
    /// Input pixels from one tap to the next.
    pub dilation: [usize; 2],
    /// Number of channel groups; each group's outputs depend on its inputs only. As many as channels for a depthwise
    /// convolution.
    pub groups: usize,
    /// The order of images and weights in memory.
    pub layout: Layout,
}

impl Default for Sizes {
    /// One pixel of one channel, as a starting point.
    fn default() -> Sizes {
        Sizes {
            samples: 1,
            inputs: 1,
            outputs: 1,
            image: [1, 1],
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
            layout: Layout::ChannelsFirst,
        }
    }
}

impl Sizes {
    /// Pixels of the output.
    pub(super) fn output(&self) -> Result<[usize; 2], ConvolutionError> {
        let zero = |what| Err(ConvolutionError::Zero { what });
        let named = [
            ("the number of input channels", self.inputs),
            ("the number of output channels", self.outputs),
            ("the number of groups", self.groups),
            ("a size of the kernel", self.kernel[0].min(self.kernel[1])),
            ("a stride", self.stride[0].min(self.stride[1])),
            ("a dilation", self.dilation[0].min(self.dilation[1])),
        ];
        if let Some((what, _)) = named.into_iter().find(|(_, size)| *size == 0) {
            return zero(what);
        }
        let Sizes { inputs, outputs, groups, .. } = *self;
        if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            return Err(ConvolutionError::Groups { groups, inputs, outputs });
        }
        let mut output = [0; 2];
        for (at, output) in output.iter_mut().enumerate() {
            let reach = (self.kernel[at] - 1).saturating_mul(self.dilation[at]).saturating_add(1);
            let padded = self.padding[at].saturating_mul(2).saturating_add(self.image[at]);
            if padded > isize::MAX as usize / 2 {
                return Err(ConvolutionError::TooLarge { what: "an image with its padding" });
            }
            if reach > padded {
                return Err(ConvolutionError::Kernel { reach, padded });
            }
            *output = (padded - reach) / self.stride[at] + 1;
        }
        Ok(output)
    }

    /// The shape of the input, in the order of memory.
    #[must_use]
    pub fn input_shape(&self) -> [usize; 4] {
        self.layout.shape(self.samples, self.inputs, self.image)
    }

    /// The shape of the weights, in the order of memory.
    #[must_use]
    pub fn weight_shape(&self) -> [usize; 4] {
        self.layout.shape(self.outputs, self.inputs / self.groups.max(1), self.kernel)
    }

    pub(super) fn input_strides(&self) -> Strides {
        self.layout.strides(self.inputs, self.image)
    }
}

/// Number of elements of a shape; fails if memory cannot hold them.
pub(super) fn elements(what: &'static str, shape: [usize; 4]) -> Result<usize, ConvolutionError> {
    let product = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    let fits = |&count: &usize| {
        count.checked_mul(size_of::<f32>()).is_some_and(|bytes| bytes <= isize::MAX as usize)
    };
    product.filter(fits).ok_or(ConvolutionError::TooLarge { what })
}
