//! What a library makes of a group of lookups.

use steptime_step::{NewOp, TensorId};

use super::views::Views;

/// The calls of a group of lookups.
pub(super) trait Calls {
    /// What gives `pooled`.
    fn forward(&self, views: &mut Views<'_>, pooled: TensorId) -> Vec<NewOp>;

    /// What takes the gradient of that, and updates the tables by the group's optimizer.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId) -> Vec<NewOp>;
}
