//! The call of an op.

use steptime_aten::{Arg, Settings};

use crate::ids::TensorId;

/// Arguments and results of an op, with tensors by their ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Call {
    /// Arguments.
    pub inputs: Vec<Arg<TensorId>>,
    /// Results.
    pub outputs: Vec<Arg<TensorId>>,
    /// PyTorch's global settings during the call.
    pub settings: Settings,
}

impl Call {
    /// The same call with other tensors.
    #[must_use]
    pub fn with(&self, tensor: &mut impl FnMut(TensorId) -> TensorId) -> Call {
        let mut all = |args: &[Arg<TensorId>]| args.iter().map(|arg| arg.map(|&id| tensor(id))).collect();
        Call { inputs: all(&self.inputs), outputs: all(&self.outputs), settings: self.settings }
    }

    /// The input tensors.
    pub fn takes(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().flat_map(Arg::tensors).copied()
    }

    /// The output tensors.
    pub fn gives(&self) -> impl Iterator<Item = TensorId> {
        self.outputs.iter().flat_map(Arg::tensors).copied()
    }
}
