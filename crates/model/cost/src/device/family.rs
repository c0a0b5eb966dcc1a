//! What every family of kernels offers: features, and models that need no learning.

use steptime_aten::KernelCall;

use super::context::Context;
use super::paper::Published;
use super::spec::DeviceSpec;

/// What a formula of the specification says of a call on a GPU that nothing was measured on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Specified {
    /// The time, µs.
    pub us: f64,
    /// How much it counts beside models that another GPU lends, 0 to 1: it was seen to hold for large calls.
    pub share: f64,
    /// Half-widths that it was seen to have on GPUs left out, where it was scored alone; else those of the models hold.
    pub worth: Option<Worth>,
}

/// Half-widths of the 90 % interval of the logarithm of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// A call's own.
    pub own: f64,
    /// Common to all calls of a family.
    pub shared: f64,
}

impl Specified {
    /// Of a call that waits for memory: it counts by half where the call moves twice what the cache holds.
    #[must_use]
    pub fn of_memory(us: f64, call: &KernelCall, spec: &DeviceSpec) -> Specified {
        let held = 2.0 * spec.l2.effective_bytes as f64 / (call.footprint() as f64).max(1.0);
        Specified { us, share: 1.0 / (1.0 + held * held), worth: None }
    }

    /// Of a call that computes: it counts by half where the call is as short as the shortest that it was seen to hold for.
    #[must_use]
    pub fn of_arithmetic(us: f64) -> Specified {
        const SHORTEST_US: f64 = 100.0;
        let short = SHORTEST_US / us.max(1e-3);
        Specified { us, share: 1.0 / (1.0 + short * short), worth: None }
    }
}

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

    /// The time by a formula that was seen to hold on GPUs of several architectures, of calls that have one.
    fn specified(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec) -> Option<Specified> {
        None
    }

    /// What the `paper` model of this family is.
    fn published(&self) -> Published {
        Published::Roofline
    }

    /// The time by a published formula, µs, where one exists for this call.
    fn paper(&self, _call: &KernelCall, _ctx: &Context, _spec: &DeviceSpec) -> Option<f64> {
        None
    }
}
