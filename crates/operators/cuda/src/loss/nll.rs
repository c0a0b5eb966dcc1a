//! The mean negative logarithm of the probabilities of given classes, and its gradient: see `nll.cu`.

use bytemuck::{Pod, Zeroable};

use super::parts::{THREADS, grid, parts, total_grid};
use crate::block_sums::BLOCK_SUMS;
use crate::{Args, Buffer, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Layout of `Part` in `nll.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Part {
    sum: f64,
    first: u64,
}

/// Layout of `Fault` in `nll.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
struct Fault {
    sample: u64,
    class: i64,
}

/// No sample of no class.
const CLEAN: Fault = Fault { sample: u64::MAX, class: 0 };

/// Threads of a block of the gradient.
const GRADIENT_THREADS: usize = 256;

/// The mean negative logarithm of the probabilities of the samples' classes, for a batch of fixed shape.
///
/// [`NllLoss::forward`] and [`NllLoss::backward`] allocate nothing and do not wait within one stream, so they can be
/// captured. Classes out of range are reported by [`NllLoss::check`].
#[derive(Debug)]
pub struct NllLoss {
    rows: usize,
    classes: usize,
    /// Whether logarithms are those at the samples' classes alone.
    picked: bool,
    sum: Kernel,
    add: Kernel,
    set: Kernel,
    parts: Buffer<Part>,
    fault: Buffer<Fault>,
}

impl NllLoss {
    /// Compiles the loss of `rows` samples of `classes` classes.
    ///
    /// # Errors
    ///
    /// More samples than a launch has threads; no compiler; not enough memory.
    pub fn new(device: &Device, rows: usize, classes: usize) -> Result<NllLoss, Error> {
        NllLoss::of_logarithms(device, rows, classes, false)
    }

    /// Compiles the loss of logarithms at the samples' classes, one for each.
    pub(super) fn of_picked(device: &Device, rows: usize, classes: usize) -> Result<NllLoss, Error> {
        NllLoss::of_logarithms(device, rows, classes, true)
    }

    fn of_logarithms(device: &Device, rows: usize, classes: usize, picked: bool) -> Result<NllLoss, Error> {
        if rows.div_ceil(GRADIENT_THREADS) > i32::MAX as usize || rows.checked_mul(classes).is_none() {
            return Err(Error::Unsupported {
                what: format!("a loss of {rows} samples of {classes} classes"),
                remedy: "cut the batch into parts of fewer than 2^39 samples",
            });
        }
        let module = device.load(&source(rows, classes, picked))?;
        Ok(NllLoss {
            rows,
            classes,
            picked,
            sum: module.kernel("sum_classes")?,
            add: module.kernel("add_classes")?,
            set: module.kernel("set_classes")?,
            parts: Buffer::uninit(device, parts(rows))?,
            fault: Buffer::from_host(&device.stream()?, &[CLEAN])?,
        })
    }

    /// Computes the mean of `-log[i, classes[i]]` as the first element of `loss`, and the number of samples as the
    /// first element of `total`, from logarithms of probabilities `[rows, classes]` and a class for each row. A class
    /// out of range adds nothing to the sum, and is reported by [`NllLoss::check`].
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for; the driver refuses.
    pub fn forward(
        &mut self,
        stream: &Stream,
        log: Slice<'_, f32>,
        classes: Slice<'_, i64>,
        loss: &mut SliceMut<'_, f32>,
        total: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let needed = if self.picked { self.rows } else { self.rows * self.classes };
        same("logarithms of probabilities", log.len(), needed)?;
        same("classes of samples", classes.len(), self.rows)?;
        one("the mean loss", loss.len())?;
        one("the number of samples", total.len())?;
        let parts = parts(self.rows);
        let args = Args::new().slice(log).slice(classes).own(self.parts.as_ref());
        let args = args.slice_mut(loss).slice_mut(total).own(self.fault.as_ref());
        // SAFETY: the arguments are those of `sum_classes`, which reads as many elements as were checked, stays within
        // them whatever the classes are, and writes one sum for each part, or one result. All memory is named.
        unsafe { self.sum.launch(stream, grid(parts), args)? };
        if parts == 1 {
            return Ok(());
        }
        let args = Args::new().slice(self.parts.as_ref()).slice(classes);
        let args = args.slice_mut(loss).slice_mut(total).own(self.fault.as_ref());
        // SAFETY: the arguments are those of `add_classes`, which reads the sum of each part and one class, and writes
        // one result. All memory is named.
        unsafe { self.add.launch(stream, total_grid(), args) }
    }

    /// Computes the gradient of the logarithms, `[rows, classes]`: `-grad[0] / total[0]` at each sample's class and zero
    /// elsewhere, also for a sample whose class is out of range.
    ///
    /// # Errors
    ///
    /// Operands of other sizes than this was made for; the driver refuses.
    pub fn backward(
        &self,
        stream: &Stream,
        grad: Slice<'_, f32>,
        classes: Slice<'_, i64>,
        total: Slice<'_, f32>,
        to: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        one("the gradient of a mean loss", grad.len())?;
        same("classes of samples", classes.len(), self.rows)?;
        one("the number of samples", total.len())?;
        same("gradients of the logarithms", to.len(), self.rows * self.classes)?;
        to.fill_bytes(stream, 0)?;
        let blocks = self.rows.div_ceil(GRADIENT_THREADS) as u32;
        let args = Args::new().slice(grad).slice(classes).slice(total).slice_mut(to);
        // SAFETY: the arguments are those of `set_classes`; sizes were checked, and it stays within them whatever the
        // classes are. All memory is named.
        unsafe { self.set.launch(stream, Grid::line(blocks, GRADIENT_THREADS as u32), args) }
    }

    /// Waits for the stream, and reports the first class out of range that [`NllLoss::forward`] found since the last
    /// time.
    ///
    /// # Errors
    ///
    /// A class out of range, with its sample; a kernel that failed.
    pub fn check(&mut self, stream: &Stream) -> Result<(), Error> {
        let mut found = [CLEAN];
        self.fault.as_ref().read(stream, &mut found)?;
        let [Fault { sample, class }] = found;
        if found == [CLEAN] {
            return Ok(());
        }
        self.fault.as_mut().write(stream, &[CLEAN])?;
        Err(Error::Class { sample: sample as usize, class, classes: self.classes })
    }
}

fn same(what: &'static str, found: usize, needed: usize) -> Result<(), Error> {
    if found == needed { Ok(()) } else { Err(Error::Size { what, found, needed }) }
}

fn one(what: &'static str, found: usize) -> Result<(), Error> {
    if found == 0 { Err(Error::Size { what, found, needed: 1 }) } else { Ok(()) }
}

/// The source for `rows` samples of `classes` classes.
fn source(rows: usize, classes: usize, picked: bool) -> Source {
    Source::new("nll.cu", [BLOCK_SUMS, include_str!("nll.cu")].concat())
        .define("THREADS", format!("{THREADS}u"))
        .define("PARTS", format!("{}u", parts(rows)))
        .define("ROWS", format!("{rows}ull"))
        .define("CLASSES", format!("{classes}ull"))
        .define("PICKED", u8::from(picked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        for (rows, classes) in [(0, 1), (100, 10), (1 << 20, 1000)] {
            compiler.build(&source(rows, classes, false));
            compiler.build(&source(rows, classes, true));
        }
    }
}
