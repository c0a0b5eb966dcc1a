//! What is said of an op that is not known: its bytes.

use smallvec::SmallVec;

use crate::call::OpCall;
use crate::kernel::{Kernel, KernelCall, Operand, Role};
use crate::operands;
use crate::ops::Lowered;

/// An op priced by the tensors it takes and gives; one without any launches nothing.
#[must_use]
pub fn lower(call: &OpCall) -> Lowered {
    let mut list: SmallVec<[Operand; 4]> = operands::inputs(call);
    if call.name.ends_with('_')
        && let Some(first) = list.first_mut()
    {
        first.role = Role::Update;
    }
    list.extend(operands::outputs(call));
    if list.iter().all(|operand| operand.bytes == 0) {
        return Lowered::Nothing;
    }
    let dtype = operands::main_dtype(call);
    Lowered::Unknown(KernelCall { kernel: Kernel::Unknown, dtype, operands: list, flops: 0, launches: 1 })
}
