//! Bottleneck of a step: the host, or one of a GPU's rates.

use std::collections::BTreeMap;

use steptime_cost::device::DeviceSpec;
use steptime_trace::Nanos;

use crate::pricing::{Bound, Roof};
use crate::whatif::ModifiedStep;

/// Bottleneck of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The host: the GPU waits for it.
    Host,
    /// The GPU's memory, or its second-level cache.
    Memory,
    /// The GPU's arithmetic.
    Arithmetic,
    /// The link between host and GPU.
    Link,
    /// Launch latency: kernels too small to be shorter.
    Launch,
}

impl Limit {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Host => "host",
            Limit::Memory => "memory",
            Limit::Arithmetic => "arithmetic",
            Limit::Link => "link",
            Limit::Launch => "launch",
        }
    }
}

/// The limit with the most device time of a step; `time` returns the time of a launch.
pub(super) fn device_limit(
    edited: &ModifiedStep,
    spec: &DeviceSpec,
    time: impl Fn(&crate::pricing::Launch) -> Nanos,
) -> Limit {
    let mut times: BTreeMap<Limit, Nanos> = BTreeMap::new();
    for launch in &edited.launches {
        let limit = match Roof::compute(&launch.call, &launch.context, spec).bound {
            Bound::Memory | Bound::Cache => Limit::Memory,
            Bound::Arithmetic => Limit::Arithmetic,
            Bound::Link => Limit::Link,
            Bound::Launch => Limit::Launch,
        };
        *times.entry(limit).or_default() += time(launch);
    }
    let most = times.into_iter().max_by_key(|&(limit, time)| (time, std::cmp::Reverse(limit)));
    most.map_or(Limit::Memory, |(limit, _)| limit)
}
