//! Functions of typed operands on a GPU.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::{Function, Operand, Pointwise, Type};

use crate::arg::Arg;
use crate::binder::{Built, Refusal};
use crate::kernel::Kernel;

/// The operand of a function.
fn operand(arg: &Arg) -> Result<Operand, Refusal> {
    let r#type = match arg.dtype {
        Dtype::F32 => Type::F32,
        Dtype::I64 => Type::I64,
        Dtype::Bool => Type::Bool,
        other => return Err(format!("it takes {} on a GPU", other.name())),
    };
    Ok(Operand { layout: arg.layout.clone(), r#type })
}

/// An instruction on a GPU that computes a function.
pub(crate) fn on_gpu(function: Function, inputs: Vec<Arg>, to: Arg) -> Result<Built, Refusal> {
    let operands = inputs.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
    let output = operand(&to)?;
    Ok(Built::Kernel(Kernel::on_gpu(move |gpu| {
        let work = Pointwise::new(gpu.stream.device(), function, &operands, &output)?;
        Ok(Box::new(move |gpu| {
            let all = inputs.iter().map(|input| input.device(&gpu.memory)).collect::<Result<Vec<_>, _>>()?;
            Ok(work.run(gpu.stream, &all, &mut to.device_mut(&mut gpu.memory)?)?)
        }))
    })))
}
