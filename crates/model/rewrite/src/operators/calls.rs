//! Calls of a library for a group of lookups.

use steptime_step::{NewOp, TensorId};

use super::views::Views;

/// The calls of a group of lookups.
pub(super) trait Calls {
    /// Ops that compute `pooled`.
    fn forward(&self, views: &mut Views<'_>, pooled: TensorId) -> Vec<NewOp>;

    /// Ops that take the gradient of `pooled`, and update the tables by the group's optimizer or compute their gradients.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId) -> Vec<NewOp>;
}
