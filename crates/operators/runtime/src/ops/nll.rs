//! The mean negative logarithm of the probabilities of given classes, and its gradient.

use steptime_aten::Dtype;
use steptime_cuda::loss::NllLoss;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::error::Failure;
use crate::gpu::{Gpu, GpuWork};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] =
    &[runs("aten::nll_loss_forward", forward), runs("aten::nll_loss_backward", backward)];

/// PyTorch's code for the mean of all losses.
const MEAN: i64 = 1;

/// A class outside of the columns of the logarithms.
#[derive(Debug, thiserror::Error)]
#[error("sample {sample} has class {class}: classes are 0 to {}", classes.saturating_sub(1))]
struct NoClass {
    sample: usize,
    class: i64,
    classes: usize,
}

/// `nll_loss_forward(self, target, weight, reduction, ignore_index)`: the loss, and the number of samples.
fn forward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if !b.is_none(2) || b.int(3)? != MEAN {
        return Err("its classes have weights, or its reduction is not the mean".to_owned());
    }
    let (log, classes) = (b.floats(0)?, b.reads(1)?);
    of_type(&classes, Dtype::I64)?;
    in_order(&classes)?;
    in_order(&log)?;
    let (loss, total) = (b.writes(0)?, b.writes(1)?);
    let &[rows, width] = log.shape() else { return Err("its input is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        let work = GpuNll { log, classes, results: [loss, total], shape: [rows, width], work: None };
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(work))));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (log, classes) = (log.row(&run.memory)?, classes.int_row(&run.memory)?);
        let mut sum = 0.0_f64;
        for (sample, (row, &class)) in log.chunks(width.max(1)).zip(classes).enumerate() {
            let found = usize::try_from(class).ok().and_then(|class| row.get(class));
            sum -= f64::from(*found.ok_or(NoClass { sample, class, classes: width })?);
        }
        let count = classes.len() as f64;
        loss.row_mut(&mut run.memory)?[0] = (sum / count) as f32;
        total.row_mut(&mut run.memory)?[0] = count as f32;
        Ok(())
    })))
}

/// `nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)`.
fn backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if !b.is_none(3) || b.int(4)? != MEAN {
        return Err("its classes have weights, or its reduction is not the mean".to_owned());
    }
    let (grad, classes, total) = (b.floats(0)?, b.reads(2)?, b.floats(6)?);
    of_type(&classes, Dtype::I64)?;
    in_order(&classes)?;
    let to = b.writes(0)?;
    in_order(&to)?;
    let &[rows, width] = to.shape() else { return Err("its result is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let work = NllLoss::new(gpu.stream.device(), rows, width)?;
            Ok(Box::new(move |gpu| {
                let [grad, total] = [&grad, &total].map(|arg| arg.device_row(&gpu.memory));
                let classes = classes.device_row(&gpu.memory)?;
                let mut to = to.device_row_mut(&mut gpu.memory)?;
                Ok(work.backward(gpu.stream, grad?, classes, total?, &mut to)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let factor = -grad.row(&run.memory)?[0] / total.row(&run.memory)?[0];
        let classes = classes.int_row(&run.memory)?;
        let rows = to.row_mut(&mut run.memory)?.chunks_mut(width.max(1)).zip(classes);
        let mut rows: Vec<_> = rows.collect();
        run.cpu.run_with(&mut rows, |_, (row, class)| {
            row.fill(0.0);
            if let Some(one) = usize::try_from(**class).ok().and_then(|class| row.get_mut(class)) {
                *one = factor;
            }
        });
        Ok(())
    })))
}

/// The loss on a GPU.
#[derive(Debug)]
struct GpuNll {
    log: Arg,
    classes: Arg,
    /// The loss, and the number of samples.
    results: [Arg; 2],
    shape: [usize; 2],
    work: Option<NllLoss>,
}

impl GpuWork for GpuNll {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let [rows, width] = self.shape;
        self.work = Some(NllLoss::new(gpu.stream.device(), rows, width)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let (log, classes) = (self.log.device_row(&gpu.memory)?, self.classes.device_row(&gpu.memory)?);
        let [loss, total] = self.results.each_ref().map(|arg| arg.device_row_mut(&mut gpu.memory));
        Ok(work.forward(gpu.stream, log, classes, &mut loss?, &mut total?)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.as_mut().map_or(Ok(()), |work| Ok(work.check(gpu.stream)?))
    }
}
