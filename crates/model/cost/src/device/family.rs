//! What every family of kernels offers: features, and models that need no learning.

use steptime_aten::KernelCall;

use super::context::Context;
use super::paper::Published;
use super::spec::DeviceSpec;

/// A family of kernels.
///
/// Methods must be pure, must accept any call (zeros, enormous sizes) without panicking, and may be given calls of
/// another family only by mistake: they then return the launch floor.
pub trait Family: Sync {
    /// Its name, that of [`Kernel::family`](steptime_aten::Kernel::family).
    fn name(&self) -> &'static str;

    /// The names of its features, in their order.
    fn feature_names(&self) -> &'static [&'static str];

    /// Appends the features of one call, as many as there are names. One that has no value is not-a-number.
    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>);

    /// The names of features that only [stages](super::stage) use: what was learnt earlier does not know them. Empty
    /// for most.
    fn more_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends these features of one call, as many as there are names.
    fn more(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec, _out: &mut Vec<f32>) {}

    /// What tells apart, beyond the variant, calls that run different kernels: a stage that has seen one kind says
    /// nothing of another.
    fn kind(&self, _call: &KernelCall) -> &'static str {
        ""
    }

    /// The time by our own formula, µs: positive and finite, at least the launch floor.
    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64;

    /// What the `paper` model of this family is.
    fn published(&self) -> Published {
        Published::Roofline
    }

    /// The time by a published formula, µs, where one exists for this call.
    fn paper(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec) -> Option<f64> {
        None
    }
}
