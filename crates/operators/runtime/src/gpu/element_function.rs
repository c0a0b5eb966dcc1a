//! Functions of elements with their operands.

use steptime_cuda::pointwise::Function;

use crate::arg::Arg;

/// A function of elements with its operands.
#[derive(Debug, Clone)]
pub(crate) struct ElementFunction {
    pub(crate) function: Function,
    pub(crate) inputs: Vec<Arg>,
    pub(crate) outputs: Vec<Arg>,
}
