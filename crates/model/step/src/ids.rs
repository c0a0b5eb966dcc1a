//! Ids of a step's rows.

use steptime_trace::ids;

ids! {
    /// An op: a row of [`Step::ops`](crate::Step::ops).
    OpId;
    /// A tensor: a row of [`Step::tensors`](crate::Step::tensors).
    TensorId;
}
