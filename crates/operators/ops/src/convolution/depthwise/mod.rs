//! Convolutions of one channel a group: sums of a few products, vectorized over the innermost dimension in memory.
//!
//! | file | channels | content |
//! |---|---|---|
//! | `first.rs` | first | forward pass, and gradient of the input |
//! | `first_gradient.rs` | first | gradient of the weights |
//! | `last.rs` | last | forward pass, and gradient of the input |
//! | `last_gradient.rs` | last | gradient of the weights |
//! | `plane.rs` | first | a channel of an image with zeros around it |
//! | `taps.rs` | | image pixels under the taps |

mod first;
mod first_gradient;
mod last;
mod last_gradient;
mod plane;
mod taps;

use super::layout::Strides;
use super::patches::Patches;
use super::product::Product;
use crate::Cpu;

impl Product<'_> {
    /// Computes the product, where a group has one channel and one lane.
    pub(super) fn run_depthwise(&self, cpu: &Cpu, y: &mut [f32]) {
        if self.patches.last { last::product(self, cpu, y) } else { first::product(self, cpu, y) }
    }
}

/// Adds the products of the pixels under the taps with their gradients, at `dy`, into `dweight`, `[channels, taps]`.
pub(super) fn weight_gradient(
    cpu: &Cpu,
    patches: &Patches<'_>,
    dy: &[f32],
    strides: Strides,
    dweight: &mut [f32],
) {
    let of = if patches.last { last_gradient::weight_gradient } else { first_gradient::weight_gradient };
    of(cpu, patches, dy, strides, dweight);
}
