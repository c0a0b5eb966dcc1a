//! The gradient of the bias: the sum of each output channel.

use super::{Convolution, ConvolutionError, Layout};
use crate::Cpu;
use crate::cpu::share;
use crate::gemm::{Loop, widen, with_buffer};
use crate::shared::Shared;

/// Number of concurrent sums, so that they do not wait for each other.
const LANES: usize = 32;

/// Pixels of a part with channels last.
const PIXELS: usize = 1024;

/// Largest number of parts with channels last.
const STRETCHES: usize = 64;

impl Convolution {
    /// Computes the gradient `dbias` of the bias, O elements, from that of the output, `dy`.
    ///
    /// # Errors
    ///
    /// An operand has another number of elements.
    pub fn bias_gradient(&self, cpu: &Cpu, dy: &[f32], dbias: &mut [f32]) -> Result<(), ConvolutionError> {
        self.check_output("the gradient of the output", dy)?;
        self.check_bias("the gradient of the bias", dbias)?;
        let (channels, image) = (self.sizes.outputs, self.output[0] * self.output[1]);
        let pixels = self.sizes.samples * image;
        if self.sizes.layout == Layout::ChannelsFirst {
            cpu.run_with(dbias, |channel, sum| {
                let images = dy.chunks_exact(channels * image);
                *sum = images.map(|of| widen(cpu.arch(), Sum(&of[channel * image..][..image]))).sum();
            });
            return Ok(());
        }
        let stretches = pixels.div_ceil(PIXELS).clamp(1, STRETCHES);
        with_buffer(stretches * channels, |sums| {
            let shared = Shared::new(sums);
            cpu.run(stretches, |part| {
                // SAFETY: `run` does each part once, and each has its own sums.
                let sums = unsafe { shared.range(part * channels, channels) };
                sums.fill(0.0);
                let pixels = share(pixels, stretches, part);
                let rows = &dy[pixels.start * channels..pixels.end * channels];
                widen(cpu.arch(), Columns { rows, sums });
            });
            dbias.fill(0.0);
            widen(cpu.arch(), Columns { rows: sums, sums: dbias });
        });
        Ok(())
    }
}

/// The sum of some floats.
struct Sum<'a>(&'a [f32]);

impl Loop for Sum<'_> {
    type Out = f32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f32 {
        let mut sums = [0.0_f32; LANES];
        let chunks = self.0.chunks_exact(LANES);
        let rest: f32 = chunks.remainder().iter().sum();
        for chunk in chunks {
            for lane in 0..LANES {
                sums[lane] += chunk[lane];
            }
        }
        sums.iter().sum::<f32>() + rest
    }
}

/// Adds rows to sums.
struct Columns<'a> {
    rows: &'a [f32],
    sums: &'a mut [f32],
}

impl Loop for Columns<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for row in self.rows.chunks_exact(self.sums.len()) {
            self.sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}
