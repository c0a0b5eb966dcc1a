//! Calls from the ops of a Kineto trace recorded with shapes.

use steptime_graph::TraceOp;
use steptime_trace::{OpInput, Trace};

use crate::argument;
use crate::call::{Arg, Device, OpCall};
use crate::dtype::Dtype;

/// Calls of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    trace: &'a Trace,
    /// Whether strides were recorded; a tensor without any is then a sparse one.
    strided: bool,
}

impl<'a> Calls<'a> {
    /// Returns the calls of a trace.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Calls<'a> {
        let strided = |inputs: OpInput<'_>| (0..inputs.len()).any(|arg| !inputs.strides(arg).is_empty());
        Calls { trace, strided: trace.inputs.iter().any(|(_, inputs)| strided(inputs)) }
    }

    /// Returns the call of an op; `None` if no inputs were recorded. Kineto does not record devices, results,
    /// texts and some lists of tensors.
    #[must_use]
    pub fn call(&self, op: TraceOp) -> Option<OpCall> {
        let Calls { trace, strided } = *self;
        let name = trace.ops.name.get(op.index()).map(|&id| trace.name(id))?;
        let inputs = trace.inputs.get(op.0)?;
        let sibling = (0..inputs.len()).find_map(|arg| Dtype::parse(trace.name(inputs.dtype(arg))));
        let read = Reader { trace, inputs, strided, sibling: sibling.unwrap_or(Dtype::F32) };
        Some(OpCall::new(name, (0..inputs.len()).map(|arg| read.arg(arg)).collect()))
    }
}

/// Returns one call, see [`Calls::call`]; for many calls of a trace, create [`Calls`] once.
#[must_use]
pub fn op_call(trace: &Trace, op: TraceOp) -> Option<OpCall> {
    Calls::new(trace).call(op)
}

struct Reader<'a> {
    trace: &'a Trace,
    inputs: OpInput<'a>,
    /// Whether strides were recorded.
    strided: bool,
    /// Element type assumed for lists, whose type is not recorded.
    sibling: Dtype,
}

impl Reader<'_> {
    fn arg(&self, arg: usize) -> Arg {
        let dtype = self.trace.name(self.inputs.dtype(arg));
        if self.inputs.is_list(arg) || dtype == "TensorList" {
            return self.list(arg);
        }
        let Some(dtype) = Dtype::parse(dtype) else {
            return argument::value(self.trace.name(self.inputs.concrete(arg)));
        };
        let strides = self.strided.then(|| self.inputs.strides(arg));
        Arg::Tensor(argument::tensor(self.inputs.dims(arg), strides, dtype, Device::Unknown))
    }

    fn list(&self, arg: usize) -> Arg {
        let strides: Vec<_> = self.inputs.tensor_strides(arg).collect();
        let shapes = self.inputs.tensors(arg).enumerate();
        let tensor =
            |(at, shape)| argument::tensor(shape, strides.get(at).copied(), self.sibling, Device::Unknown);
        Arg::Tensors(shapes.map(tensor).collect())
    }
}
