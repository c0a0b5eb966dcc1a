//! Linear layers: `y = activation(x W^T + bias)` and its gradients, without storing intermediate results.
//!
//! Bias and activation are applied when a finished tile is stored. In the backward pass, the slope of the activation is
//! applied while the gradient is packed, and the gradient of the bias is summed from the same panels.

mod backward;
mod forward;
mod gradients;
mod reference;
pub(super) mod single;

pub use backward::linear_backward;
pub use forward::{linear, linear_packed};
pub use gradients::Gradients;
pub use reference::{linear_backward_reference, linear_reference};
