//! Interface of kernel families: features, and models that need no learning.

use steptime_aten::KernelCall;

use super::context::Context;
use super::paper::PaperModel;
use super::spec::DeviceSpec;

/// Estimate of a call by a formula of the specification, for a GPU without measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpecEstimate {
    /// Duration, µs.
    pub us: f64,
    /// Weight against the models transferred from another GPU, 0 to 1: the formula was observed to hold for large calls.
    pub share: f64,
    /// Half-widths on left-out GPUs, if the formula was scored alone; else those of the models apply.
    pub worth: Option<HalfWidths>,
}

/// Half-widths of the 90 % interval of the logarithm of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HalfWidths {
    /// Half-width of a call's own error.
    pub own: f64,
    /// Half-width of the error that all calls of a family share.
    pub shared: f64,
}

impl SpecEstimate {
    /// Estimate of a call bound by memory: its weight is a half if the call moves twice the size of the cache.
    #[must_use]
    pub fn by_memory(us: f64, call: &KernelCall, spec: &DeviceSpec) -> SpecEstimate {
        let held = 2.0 * spec.l2.effective_bytes as f64 / (call.footprint() as f64).max(1.0);
        SpecEstimate { us, share: 1.0 / (1.0 + held * held), worth: None }
    }

    /// Estimate of a call bound by arithmetic: its weight is a half if the call is as short as the shortest that the formula holds for.
    #[must_use]
    pub fn by_arithmetic(us: f64) -> SpecEstimate {
        const SHORTEST_US: f64 = 100.0;
        let short = SHORTEST_US / us.max(1e-3);
        SpecEstimate { us, share: 1.0 / (1.0 + short * short), worth: None }
    }
}

/// A family of kernels.
///
/// Methods must be pure, must accept any call (zeros, enormous sizes) without panicking, and may be given calls of
/// another family only by mistake: they then return the launch floor.
pub trait Family: Sync {
    /// Returns the family's name, that of [`Kernel::family`](steptime_aten::Kernel::family).
    fn name(&self) -> &'static str;

    /// Returns the names of its features, in their order.
    fn feature_names(&self) -> &'static [&'static str];

    /// Appends the features of one call, one per name. A feature without a value is not-a-number.
    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>);

    /// Returns the names of features that only [stages](super::correction) use: earlier models do not have them. Empty
    /// for most.
    fn more_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Appends these features of one call, one per name.
    fn more(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec, _out: &mut Vec<f32>) {}

    /// Returns a name for calls that run different kernels, beyond the variant: a stage fitted on one kind does not
    /// apply to another.
    fn kind(&self, _call: &KernelCall) -> &'static str {
        ""
    }

    /// Returns the duration by steptime's formula, µs: positive and finite, at least the launch floor.
    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64;

    /// Returns the estimate by a formula that was observed to hold on GPUs of several architectures, if the call has one.
    fn specified(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec) -> Option<SpecEstimate> {
        None
    }

    /// Returns the kind of this family's `paper` model.
    fn published(&self) -> PaperModel {
        PaperModel::Roofline
    }

    /// Returns the duration by a published formula, µs, if one exists for this call.
    fn paper(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec) -> Option<f64> {
        None
    }
}
