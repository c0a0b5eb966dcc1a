//! Functions of typed operands on a GPU.

use steptime_cuda::pointwise::Function;

use crate::arg::Arg;
use crate::binder::{Built, Refusal};
use crate::gpu::{ElementFunction, GpuPointwise, SameFunction};
use crate::kernel::Kernel;

/// An instruction on a GPU that computes a function.
pub(crate) fn on_gpu(function: Function, inputs: Vec<Arg>, outputs: Vec<Arg>) -> Result<Built, Refusal> {
    let work = GpuPointwise::from_function(ElementFunction { function, inputs, outputs })?;
    Ok(Built::Kernel(Kernel::Gpu(Box::new(work))))
}

/// A copy on a GPU, which a chain of functions computes too where both tensors have neighbouring elements in the same order.
pub(crate) fn copy(kernel: Kernel, from: &Arg, to: &Arg) -> Kernel {
    let in_order = |arg: &Arg| arg.layout.strides().last().is_none_or(|&step| step == 1);
    match kernel {
        Kernel::Gpu(work) if in_order(from) && in_order(to) && from.shape() == to.shape() => {
            let (inputs, outputs) = (vec![from.clone()], vec![to.clone()]);
            let function = ElementFunction { function: Function::Convert, inputs, outputs };
            Kernel::Gpu(Box::new(SameFunction { work, function }))
        }
        other => other,
    }
}
