//! Shared code of the families: names of common features, logarithms, codes.

use steptime_aten::{Dtype, KernelCall};

use crate::device::context::Context;

use super::memory::Traffic;

/// Features of a family as one list of names with their values, in the profiles' order.
///
/// Makes the two named methods of [`Family`](crate::device::family::Family), after the code that the values need: with
/// `shared`, the features that all families have come first, which the block pushes by [`push_shared`]. `free` makes a
/// list of names and a function, for families that share their list.
macro_rules! features {
    (
        shared $names:ident, $values:ident($self:ident, $call:ident, $ctx:ident, $spec:ident, $out:ident)
        { $($before:tt)* }
        $($feature:literal => $value:expr),* $(,)?
    ) => {
        fn $names(&self) -> &'static [&'static str] {
            $crate::device::families::shared::names![$($feature),*]
        }

        fn $values(&$self, $call: &KernelCall, $ctx: &Context, $spec: &DeviceSpec, $out: &mut Vec<f32>) {
            $($before)*
            $out.extend_from_slice(&[$($value),*]);
        }
    };
    (
        own $names:ident, $values:ident($self:ident, $call:ident, $ctx:ident, $spec:ident, $out:ident)
        { $($before:tt)* }
        $($feature:literal => $value:expr),* $(,)?
    ) => {
        fn $names(&self) -> &'static [&'static str] {
            &[$($feature),*]
        }

        fn $values(&$self, $call: &KernelCall, $ctx: &Context, $spec: &DeviceSpec, $out: &mut Vec<f32>) {
            $($before)*
            $out.extend_from_slice(&[$($value),*]);
        }
    };
    (
        free $names:ident, $values:ident($($argument:ident: $type:ty),*; $out:ident)
        { $($before:tt)* }
        $($feature:literal => $value:expr),* $(,)?
    ) => {
        const $names: &[&str] = $crate::device::families::shared::names![$($feature),*];

        fn $values($($argument: $type,)* $out: &mut Vec<f32>) {
            $($before)*
            $out.extend_from_slice(&[$($value),*]);
        }
    };
}
pub(super) use features;

/// Names of all features: the shared ones first, in the order of [`push_shared`].
macro_rules! names {
    ($($own:literal),* $(,)?) => {
        &[
            "ln_analytic", "ln_read", "ln_written", "ln_dram", "resident", "reused", "setting", "ln_flops", "dtype",
            "launches",
            $($own),*
        ]
    };
}
pub(super) use names;

/// Appends the features that every family has.
pub(super) fn push_shared(
    call: &KernelCall,
    ctx: &Context,
    traffic: &Traffic,
    analytic: f64,
    out: &mut Vec<f32>,
) {
    out.extend_from_slice(&[
        ln(analytic * 1e3),
        ln(traffic.read),
        ln(traffic.written),
        ln(traffic.dram()),
        traffic.resident as f32,
        ctx.reused(call) as f32,
        ctx.setting.code(),
        ln(call.flops as f64),
        dtype(call.dtype),
        f32::from(u16::try_from(call.launches).unwrap_or(u16::MAX)),
    ]);
}

/// Logarithm of a size; 0 for sizes below one.
pub(super) fn ln(value: f64) -> f32 {
    value.max(1.0).ln() as f32
}

/// Logarithm of a ratio, of either sign; extreme values are cut off.
pub(super) fn ln_ratio(over: f64, under: f64) -> f32 {
    (over.max(1e-12) / under.max(1e-12)).ln().clamp(-30.0, 30.0) as f32
}

/// 1 for true, 0 for false.
pub(super) fn flag(value: bool) -> f32 {
    f32::from(u8::from(value))
}

/// Number of times that a size can be halved, at most `most`: the alignment that vector loads and kernels require.
pub(super) fn halvings(size: u64, most: u32) -> f32 {
    size.trailing_zeros().min(most) as f32
}

/// Fill of the tiles of a size, the last one included, 0 to 1.
pub(super) fn fill(size: u64, tile: f64) -> f32 {
    let size = size.max(1) as f64;
    (size / ((size / tile).ceil() * tile)) as f32
}

/// Code of a type. Part of the profiles' format: never renumbered.
fn dtype(dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F8 => 0.0,
        Dtype::F16 => 1.0,
        Dtype::Bf16 => 2.0,
        Dtype::F32 => 3.0,
        Dtype::F64 => 4.0,
        Dtype::Bool => 5.0,
        Dtype::I8 => 6.0,
        Dtype::I16 => 7.0,
        Dtype::I32 => 8.0,
        Dtype::I64 => 9.0,
        Dtype::Complex64 => 10.0,
        Dtype::Complex128 => 11.0,
    }
}
