//! Cross entropy of scores on a GPU, and its gradient.

use half::bf16;
use steptime_cuda::Float;
use steptime_cuda::loss::CrossEntropy;

use super::work::{Gpu, GpuWork, prepared};
use crate::arg::Arg;
use crate::error::Failure;

/// Operands of both instructions.
#[derive(Debug)]
pub(crate) struct CrossEntropyArgs {
    /// `[rows, classes]`, divided by `divisor` first.
    pub(crate) scores: Arg,
    pub(crate) classes: Arg,
    /// Logarithms of the sums of rows, in double precision.
    pub(crate) sums: Arg,
    /// The loss or its gradient, and the number of samples.
    pub(crate) scalars: [Arg; 2],
    pub(crate) divisor: f32,
}

impl CrossEntropyArgs {
    fn compile<T: Float>(&self, gpu: &Gpu<'_, '_>) -> Result<CrossEntropy<T>, Failure> {
        let (rows, width) = (self.scores.shape()[0], self.scores.shape()[1]);
        Ok(CrossEntropy::new(gpu.stream.device(), rows, width, self.divisor)?)
    }
}

/// The loss, of scores with 16 bits or 32.
pub(crate) fn cross_entropy(args: CrossEntropyArgs, halves: bool) -> Box<dyn GpuWork> {
    match halves {
        true => Box::new(Forward::<bf16> { args, work: None }),
        false => Box::new(Forward::<f32> { args, work: None }),
    }
}

/// The gradient, which is written to `to`.
pub(crate) fn cross_entropy_backward(args: CrossEntropyArgs, to: Arg, halves: bool) -> Box<dyn GpuWork> {
    if halves { backward::<bf16>(args, to) } else { backward::<f32>(args, to) }
}

#[derive(Debug)]
struct Forward<T> {
    args: CrossEntropyArgs,
    work: Option<CrossEntropy<T>>,
}

impl<T: Float> GpuWork for Forward<T> {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work = Some(self.args.compile(gpu)?);
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let CrossEntropyArgs { scores, classes, sums, scalars, .. } = &self.args;
        let (scores, classes) = (scores.device_row(&gpu.memory)?, classes.device_row(&gpu.memory)?);
        let mut sums = sums.device_row_mut(&mut gpu.memory)?;
        let [loss, total] = scalars.each_ref().map(|arg| arg.device_row_mut(&mut gpu.memory));
        Ok(work.forward(gpu.stream, scores, classes, &mut sums, [&mut loss?, &mut total?])?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        self.work.as_mut().map_or(Ok(()), |work| Ok(work.check(gpu.stream)?))
    }
}

fn backward<T: Float>(args: CrossEntropyArgs, to: Arg) -> Box<dyn GpuWork> {
    prepared(move |gpu| {
        let work = args.compile::<T>(gpu)?;
        Ok(Box::new(move |gpu| {
            let [gradient, total] = args.scalars.each_ref().map(|arg| arg.device_row(&gpu.memory));
            let (scores, classes) =
                (args.scores.device_row(&gpu.memory)?, args.classes.device_row(&gpu.memory)?);
            let sums = args.sums.device_row(&gpu.memory)?;
            let mut to = to.device_row_mut(&mut gpu.memory)?;
            Ok(work.backward(gpu.stream, [gradient?, total?], scores, classes, sums, &mut to)?)
        }))
    })
}
