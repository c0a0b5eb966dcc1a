//! Losses of one output per sample: their mean, and its gradient.

use steptime_aten::Dtype;
use steptime_cuda::loss::MeanLoss;
use steptime_ops::elementwise::Expr;
use steptime_ops::loss::{Loss, Reduction};

use super::elementwise::computes;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::mse_loss", |b| mean(b, Loss::Mse, 2)),
    runs("aten::mse_loss_backward", mse_backward),
    runs("aten::binary_cross_entropy_with_logits", cross_entropy),
];

/// PyTorch's code for the mean of all losses.
const MEAN: i64 = 1;

/// `binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)`.
fn cross_entropy(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if !(b.is_none(2) && b.is_none(3)) {
        return Err("its samples have weights".to_owned());
    }
    mean(b, Loss::BceWithLogits, 4)
}

/// The mean loss; `reduction` is the position of that argument.
fn mean(b: &mut Binder<'_, '_>, loss: Loss, reduction: usize) -> Result<Built, Refusal> {
    is_mean(b, reduction)?;
    let (x, target) = (b.floats(0)?, b.floats(1)?);
    in_order(&x)?;
    in_order(&target)?;
    let to = b.writes(0)?;
    of_type(&to, Dtype::F32)?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
            let mut work = MeanLoss::new(gpu.stream.device(), loss, x.len())?;
            Ok(Box::new(move |gpu| {
                let [x, target] = [&x, &target].map(|arg| arg.device_row(&gpu.memory));
                let mut to = to.device_row_mut(&mut gpu.memory)?;
                Ok(work.run(gpu.stream, x?, target?, &mut to)?)
            }))
        })));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let (x, target) = (x.row(&run.memory)?, target.row(&run.memory)?);
        to.row_mut(&mut run.memory)?[0] = loss.value(run.cpu, x, target, Reduction::Mean)?;
        Ok(())
    })))
}

/// `mse_loss_backward(grad_output, self, target, reduction)`: `2 (x - target) grad / n`.
fn mse_backward(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    is_mean(b, 3)?;
    b.takes_halves = true;
    let inputs = vec![b.floats(0)?, b.floats(1)?, b.floats(2)?];
    let to = b.writes(0)?;
    let [grad, x, target] = [0, 1, 2].map(Expr::input);
    let factor = 2.0 / to.len().max(1) as f64;
    computes(b.target, &[(x - target) * (grad * factor as f32)], inputs, vec![to])
}

fn is_mean(b: &Binder<'_, '_>, at: usize) -> Result<(), Refusal> {
    if b.int(at)? == MEAN { Ok(()) } else { Err("its reduction is not the mean".to_owned()) }
}
