//! Logarithms of softmax along the last dimension, and their gradient.

use steptime_aten::Dtype;
use steptime_cuda::softmax::LogSoftmax;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] =
    &[runs("aten::_log_softmax", forward), runs("aten::_log_softmax_backward_data", backward)];

/// `_log_softmax(self, dim, half_to_float)`: `x - max - ln(sum of e^(x - max))`, row by row.
fn forward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let dim = b.int(1)?;
    let from = b.floats(0)?;
    let to = b.writes(0)?;
    let width = last(&[&from, &to], dim)?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let work = LogSoftmax::new(gpu.stream.device(), from.len() / width, width)?;
            Ok(Box::new(move |gpu| {
                let from = from.device_row(&gpu.memory)?;
                Ok(work.forward(gpu.stream, from, &mut to.device_row_mut(&mut gpu.memory)?)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let from = from.row(&run.memory)?;
        let mut rows: Vec<_> =
            to.row_mut(&mut run.memory)?.chunks_mut(width).zip(from.chunks(width)).collect();
        run.cpu.run_with(&mut rows, |_, (to, from)| {
            let most = from.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = from.iter().map(|&x| f64::from((x - most).exp())).sum();
            let all = f64::from(most) + sum.ln();
            to.iter_mut().zip(*from).for_each(|(to, &x)| *to = (f64::from(x) - all) as f32);
        });
        Ok(())
    })))
}

/// `_log_softmax_backward_data(grad_output, output, dim, input_dtype)`: `grad - e^output (sum of grad)`, row by row.
fn backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let dim = b.int(2)?;
    let (grad, output) = (b.floats(0)?, b.floats(1)?);
    let to = b.writes(0)?;
    let width = last(&[&grad, &output, &to], dim)?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let work = LogSoftmax::new(gpu.stream.device(), grad.len() / width, width)?;
            Ok(Box::new(move |gpu| {
                let [grad, output] = [&grad, &output].map(|arg| arg.device_row(&gpu.memory));
                let mut to = to.device_row_mut(&mut gpu.memory)?;
                Ok(work.backward(gpu.stream, grad?, output?, &mut to)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (grad, output) = (grad.row(&run.memory)?, output.row(&run.memory)?);
        let rows = to.row_mut(&mut run.memory)?.chunks_mut(width);
        let mut rows: Vec<_> = rows.zip(grad.chunks(width).zip(output.chunks(width))).collect();
        run.cpu.run_with(&mut rows, |_, (to, (grad, output))| {
            let sum = grad.iter().map(|&g| f64::from(g)).sum::<f64>() as f32;
            to.iter_mut()
                .zip(grad.iter().zip(*output))
                .for_each(|(to, (&grad, &output))| *to = grad - output.exp() * sum);
        });
        Ok(())
    })))
}

/// The size of the last dimension of contiguous floats; `dim` must be it.
fn last(args: &[&Arg], dim: i64) -> Result<usize, Refusal> {
    let shape = args[0].shape();
    for arg in args {
        of_type(arg, Dtype::F32)?;
        in_order(arg)?;
    }
    match shape.last() {
        Some(&width) if width > 0 && (dim == -1 || dim + 1 == shape.len() as i64) => Ok(width),
        _ => Err("it is not along the last dimension".to_owned()),
    }
}
