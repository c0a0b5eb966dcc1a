//! The mean of the losses of a batch: see `mean.cu`.

use steptime_ops::loss::{Loss, LossError};

use super::parts::{THREADS, grid, parts, total_grid};
use crate::block_sums::BLOCK_SUMS;
use crate::{Args, Buffer, Device, Error, Kernel, Slice, SliceMut, Source, Stream};

/// The mean loss of a batch of fixed size.
///
/// [`MeanLoss::run`] allocates nothing and does not wait within one stream, so it can be captured.
#[derive(Debug)]
pub struct MeanLoss {
    len: usize,
    losses: Kernel,
    total: Kernel,
    /// Sum of each part.
    sums: Buffer<f64>,
}

impl MeanLoss {
    /// Compiles the mean of the losses of `len` elements.
    ///
    /// # Errors
    ///
    /// No elements; no compiler; not enough memory.
    pub fn new(device: &Device, loss: Loss, len: usize) -> Result<MeanLoss, Error> {
        if len == 0 {
            return Err(LossError::Empty.into());
        }
        let module = device.load(&source(loss, len))?;
        Ok(MeanLoss {
            len,
            losses: module.kernel("sum_losses")?,
            total: module.kernel("add_sums")?,
            sums: Buffer::uninit(device, parts(len))?,
        })
    }

    /// Computes the mean of the losses of `x[i]` and `target[i]` as the first element of `to`.
    ///
    /// # Errors
    ///
    /// Predictions or targets of another number than this was made for; no room for the mean; the driver refuses.
    pub fn run(
        &mut self,
        stream: &Stream,
        x: Slice<'_, f32>,
        target: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let needed = self.len;
        for (what, found) in [("predictions of a loss", x.len()), ("targets of a loss", target.len())] {
            if found != needed {
                return Err(Error::Size { what, found, needed });
            }
        }
        if to.is_empty() {
            return Err(Error::Size { what: "the mean loss", found: 0, needed: 1 });
        }
        let parts = parts(self.len);
        let args = Args::new().slice(x).slice(target).own(self.sums.as_ref()).slice_mut(to);
        // SAFETY: the arguments are those of `sum_losses`, which reads as many elements as were checked, and writes one
        // sum for each part, or one mean. All memory is named.
        unsafe { self.losses.launch(stream, grid(parts), args)? };
        if parts == 1 {
            return Ok(());
        }
        let args = Args::new().slice(self.sums.as_ref()).slice_mut(to);
        // SAFETY: the arguments are those of `add_sums`, which reads the sum of each part and writes one mean. All
        // memory is named.
        unsafe { self.total.launch(stream, total_grid(), args) }
    }
}

/// The source for a batch of `len` elements.
fn source(loss: Loss, len: usize) -> Source {
    Source::new("mean.cu", [BLOCK_SUMS, include_str!("mean.cu")].concat())
        .define("THREADS", format!("{THREADS}u"))
        .define("PARTS", format!("{}u", parts(len)))
        .define("LEN", format!("{len}ull"))
        .define("LOGITS", u8::from(loss == Loss::BceWithLogits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for loss in [Loss::Mse, Loss::BceWithLogits] {
            for len in [1, 10_000, 1 << 33] {
                let source = source(loss, len);
                compiler.build(&source);
            }
        }
    }
}
