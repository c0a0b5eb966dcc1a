//! Calls of ops with derived data, which is computed once and shared by all steps.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use steptime_aten::{Arg, Lowering, OpCall, OpSet};
use steptime_graph::TiVec;

use crate::call::Call;
use crate::ids::TensorId;
use crate::tensors::Tensor;

/// A call of an op. Copied steps share it with its derived data; a changed call is a new one.
#[derive(Debug, Clone, Default)]
pub struct SharedCall(Arc<CallData>);

#[derive(Debug, Default)]
struct CallData {
    call: Call,
    described: OnceLock<Box<OpCall>>,
    /// For the set of ops of the first query.
    lowered: OnceLock<Box<(OpSet, Lowering)>>,
}

impl From<Call> for SharedCall {
    fn from(call: Call) -> SharedCall {
        SharedCall(Arc::new(CallData { call, ..CallData::default() }))
    }
}

impl Deref for SharedCall {
    type Target = Call;

    fn deref(&self) -> &Call {
        &self.0.call
    }
}

impl DerefMut for SharedCall {
    fn deref_mut(&mut self) -> &mut Call {
        let shared = Arc::make_mut(&mut self.0);
        (shared.described, shared.lowered) = (OnceLock::new(), OnceLock::new());
        &mut shared.call
    }
}

impl Clone for CallData {
    fn clone(&self) -> CallData {
        CallData { call: self.call.clone(), ..CallData::default() }
    }
}

impl PartialEq for SharedCall {
    fn eq(&self, other: &SharedCall) -> bool {
        self.0.call == other.0.call
    }
}

impl SharedCall {
    /// The same call without derived data, for changed tensors.
    pub(crate) fn anew(&self) -> SharedCall {
        SharedCall::from(self.0.call.clone())
    }

    /// The call with its tensors described. They are those of the step with this op.
    pub(crate) fn described(&self, name: &str, tensors: &TiVec<TensorId, Tensor>) -> &OpCall {
        let all = |args: &[Arg<TensorId>]| {
            args.iter().map(|arg| arg.map(|&id| tensors[id].value.clone())).collect()
        };
        self.0.described.get_or_init(|| {
            Box::new(OpCall {
                name: name.to_owned(),
                inputs: all(&self.inputs),
                outputs: all(&self.outputs),
                settings: self.settings,
            })
        })
    }

    /// The launches of the described call; `None` where the first query used another set of ops.
    pub(crate) fn lowered(&self, call: &OpCall, set: &OpSet) -> Option<&Lowering> {
        let (of, lowered) = &**self.0.lowered.get_or_init(|| Box::new((set.clone(), set.lower(call))));
        of.is(set).then_some(lowered)
    }
}
