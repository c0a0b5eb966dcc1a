//! Convolutions in two dimensions.

use std::ffi::c_int;

use steptime_ops::Cpu;
use steptime_ops::convolution::{Convolution, Layout, Sizes};

use crate::apart::{self, Span, slice_mut};
use crate::error::{Failure, code};
use crate::pointers::{alive, slice};

/// The sizes of a convolution; pairs are (height, width).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ConvolutionSizes {
    /// Number of images.
    pub samples: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Pixels of the input image.
    pub image: [usize; 2],
    /// Taps of the kernel.
    pub kernel: [usize; 2],
    /// Input pixels from one output pixel to the next.
    pub stride: [usize; 2],
    /// Zeros on each side of the image.
    pub padding: [usize; 2],
    /// Input pixels from one tap to the next.
    pub dilation: [usize; 2],
    /// Number of channel groups; a group's outputs depend on that group's inputs only.
    pub groups: usize,
    /// 0 where images are `[N, C, H, W]` and weights `[O, C / groups, KH, KW]`, 1 where they are `[N, H, W, C]` and
    /// `[O, KH, KW, C / groups]`.
    pub channels_last: usize,
}

impl ConvolutionSizes {
    fn convolution(&self) -> Result<Convolution, Failure> {
        let layout = match self.channels_last {
            0 => Layout::ChannelsFirst,
            1 => Layout::ChannelsLast,
            other => return Err(format!("there is no layout {other}: choose 0 or 1").into()),
        };
        let ConvolutionSizes { samples, inputs, outputs, image, kernel, .. } = *self;
        let ConvolutionSizes { stride, padding, dilation, groups, .. } = *self;
        let sizes =
            Sizes { samples, inputs, outputs, image, kernel, stride, padding, dilation, groups, layout };
        Ok(Convolution::new(sizes)?)
    }
}

/// `y = x * weight + bias`; `bias` has an element for each output channel or is null. 0 for success.
///
/// # Safety
///
/// The handle and the sizes are alive; each pointer points to as many floats as the sizes give; no other code uses `y`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_convolution(
    cpu: *const Cpu,
    sizes: *const ConvolutionSizes,
    x: *const f32,
    weight: *const f32,
    bias: *const f32,
    y: *mut f32,
) -> c_int {
    code(|| {
        // SAFETY: alive, by the caller's promise.
        let (cpu, of) = unsafe { (alive(cpu)?, alive(sizes)?.convolution()?) };
        let outputs = of.sizes().outputs;
        apart::check(vec![
            Span::read("x", x, of.input_len()),
            Span::read("weight", weight, of.weight_len()),
            Span::read("bias", bias, outputs),
            Span::written("y", y, of.output_len()),
        ])?;
        let biased = !bias.is_null();
        // SAFETY: each pointer points to as many floats, by the caller's promise.
        let (x, weight, bias) = unsafe {
            (
                slice("x", x, of.input_len())?,
                slice("weight", weight, of.weight_len())?,
                slice("bias", bias, if biased { outputs } else { 0 })?,
            )
        };
        // SAFETY: as above; no other code uses `y`, and it overlaps no operand, as was checked.
        let y = unsafe { slice_mut("y", y, of.output_len())? };
        Ok(of.forward(cpu, x, weight, biased.then_some(bias), y)?)
    })
}

/// The gradients of [`steptime_convolution`], from the gradient `dy` of its output: `dx`, `dweight` and `dbias` have
/// the shapes of `x`, `weight` and the bias; those that are null are not computed. `x` may be null without `dweight`,
/// and `weight` without `dx`. 0 for success.
///
/// # Safety
///
/// The handle and the sizes are alive; each pointer points to as many floats as the sizes give; no other code uses the
/// gradients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn steptime_convolution_backward(
    cpu: *const Cpu,
    sizes: *const ConvolutionSizes,
    dy: *const f32,
    x: *const f32,
    weight: *const f32,
    dx: *mut f32,
    dweight: *mut f32,
    dbias: *mut f32,
) -> c_int {
    code(|| {
        // SAFETY: alive, by the caller's promise.
        let (cpu, of) = unsafe { (alive(cpu)?, alive(sizes)?.convolution()?) };
        let (inputs, weights, outputs) = (of.input_len(), of.weight_len(), of.sizes().outputs);
        apart::check(vec![
            Span::read("dy", dy, of.output_len()),
            Span::read("x", x, inputs),
            Span::read("weight", weight, weights),
            Span::written("dx", dx, inputs),
            Span::written("dweight", dweight, weights),
            Span::written("dbias", dbias, outputs),
        ])?;
        // SAFETY: as many floats, by the caller's promise.
        let dy = unsafe { slice("dy", dy, of.output_len())? };
        if !dx.is_null() {
            // SAFETY: as above; no other code uses `dx`, and it overlaps no operand, as was checked.
            let (weight, dx) = unsafe { (slice("weight", weight, weights)?, slice_mut("dx", dx, inputs)?) };
            of.input_gradient(cpu, dy, weight, dx)?;
        }
        if !dweight.is_null() {
            // SAFETY: as above.
            let (x, dweight) = unsafe { (slice("x", x, inputs)?, slice_mut("dweight", dweight, weights)?) };
            of.weight_gradient(cpu, x, dy, dweight)?;
        }
        if !dbias.is_null() {
            // SAFETY: as above.
            of.bias_gradient(cpu, dy, unsafe { slice_mut("dbias", dbias, outputs)? })?;
        }
        Ok(())
    })
}
