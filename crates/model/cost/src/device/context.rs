//! Context of a kernel: the influences on its duration apart from its arguments.

use smallvec::{SmallVec, smallvec};
use steptime_aten::{KernelCall, Role};
use steptime_launch::Indices;

use super::spec::DeviceSpec;

/// State of the cache, and the looked-up rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// Reuse distance of each of the call's operands, in their order: bytes touched by kernels from the start of
    /// the op that last touched it until this one starts. `None`: not touched lately, in device memory.
    pub reuse: SmallVec<[Option<u64>; 4]>,
    /// Distribution of indices.
    pub indices: Indices,
    /// Kernels that ran before.
    pub setting: Setting,
}

/// Kernels that ran before this one: besides the operands, its code and the dirty lines of the cache depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Setting {
    /// Many other kernels: the code is not in any instruction cache, and the cache is full of their output.
    #[default]
    Step,
    /// The same kernel, then one that wrote to other memory.
    After,
    /// The same kernel, then one that read enough other memory to leave nothing in the cache.
    Flushed,
    /// The same kernel.
    Repeated,
}

impl Setting {
    /// Code of the setting as a feature. Part of the profiles' format: never renumbered.
    #[must_use]
    pub const fn code(self) -> f32 {
        match self {
            Setting::Step => 0.0,
            Setting::After => 1.0,
            Setting::Flushed => 2.0,
            Setting::Repeated => 3.0,
        }
    }
}

impl Context {
    /// Context in a step of many kernels, with the reuse distances of the call's operands.
    #[must_use]
    pub fn in_step(reuse: SmallVec<[Option<u64>; 4]>) -> Context {
        Context { reuse, ..Context::default() }
    }

    /// Context with all operands in device memory.
    #[must_use]
    pub fn cold(call: &KernelCall) -> Context {
        Context { setting: Setting::Flushed, ..Context::in_step(smallvec![None; call.operands.len()]) }
    }

    /// Context with all operands just touched by the same call, which runs again.
    #[must_use]
    pub fn warm(call: &KernelCall) -> Context {
        Context { setting: Setting::Repeated, ..Context::after(call, 0) }
    }

    /// Context with all operands touched by the same call, and `bytes` bytes of other memory since.
    #[must_use]
    pub fn after(call: &KernelCall, bytes: u64) -> Context {
        let distance = call.footprint().saturating_add(bytes);
        let reuse = smallvec![Some(distance); call.operands.len()];
        Context { setting: Setting::After, ..Context::in_step(reuse) }
    }

    /// This context with another distribution of indices.
    #[must_use]
    pub fn with_indices(self, indices: Indices) -> Context {
        Context { indices, ..self }
    }

    /// Context of one part of a call, given the indices of its operands among the call's.
    pub(super) fn for_part(
        &self,
        (part, places): (KernelCall, SmallVec<[usize; 4]>),
    ) -> (KernelCall, Context) {
        let reuse = places.iter().map(|&at| self.reuse.get(at).copied().flatten()).collect();
        (part, Context { reuse, ..self.clone() })
    }

    /// Share of the bytes read that were touched lately, still in the cache or not. If none were, the cache is full
    /// of other kernels' output, which must be written to device memory first.
    #[must_use]
    pub fn reused(&self, call: &KernelCall) -> f64 {
        let (mut read, mut reused) = (0.0, 0.0);
        for (operand, distance) in call.operands.iter().zip(&self.reuse) {
            if operand.role != Role::Write {
                read += operand.bytes as f64;
                reused += if distance.is_some() { operand.bytes as f64 } else { 0.0 };
            }
        }
        if read > 0.0 { reused / read } else { 0.0 }
    }

    /// Share of an operand that is still in the second-level cache, 0 to 1: 0 for one that was not touched
    /// lately or does not exist.
    #[must_use]
    pub fn residency(&self, operand: usize, spec: &DeviceSpec) -> f64 {
        match self.reuse.get(operand) {
            Some(&Some(distance)) => resident(distance as f64, spec),
            _ => 0.0,
        }
    }
}

/// Share of data touched `distance` bytes ago that is still in the second-level cache.
///
/// A plain least-recently-used cache would drop everything at its size. Real ones replace less strictly, and a
/// sector at twice the effective size is sometimes found; hence a smooth fall in the logarithm of the distance.
#[must_use]
pub fn resident(distance: f64, spec: &DeviceSpec) -> f64 {
    let ratio = distance / spec.l2.effective_bytes as f64;
    1.0 / (1.0 + ratio.powf(spec.l2.sharpness))
}
