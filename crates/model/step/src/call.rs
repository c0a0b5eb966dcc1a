//! What an op was called with.

use steptime_aten::{Arg, Settings};

use crate::ids::TensorId;

/// What an op was called with: tensors by their ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Call {
    /// Its arguments.
    pub inputs: Vec<Arg<TensorId>>,
    /// Its results.
    pub outputs: Vec<Arg<TensorId>>,
    /// PyTorch's global settings while it ran.
    pub settings: Settings,
}

impl Call {
    /// The same call of other tensors.
    #[must_use]
    pub fn with(&self, tensor: &mut impl FnMut(TensorId) -> TensorId) -> Call {
        let mut all = |args: &[Arg<TensorId>]| args.iter().map(|arg| arg.map(|&id| tensor(id))).collect();
        Call { inputs: all(&self.inputs), outputs: all(&self.outputs), settings: self.settings }
    }

    /// The tensors it takes.
    pub fn takes(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().flat_map(Arg::tensors).copied()
    }

    /// The tensors it gives.
    pub fn gives(&self) -> impl Iterator<Item = TensorId> {
        self.outputs.iter().flat_map(Arg::tensors).copied()
    }
}
