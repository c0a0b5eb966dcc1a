//! Ids of a step's rows.

use steptime_trace::ids;

ids! {
    /// An op: a row of [`StepIr::ops`](crate::StepIr::ops).
    OpId;
    /// A tensor: a row of [`StepIr::tensors`](crate::StepIr::tensors).
    TensorId;
}
