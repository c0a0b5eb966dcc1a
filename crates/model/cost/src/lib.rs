//! Durations of the kernels and host gaps of a training step.
//!
//! [`host`] measures gaps, subtracts the profiler's own cost, keeps them in profiles and prices other graphs with
//! them. [`overheads`] shows them as the paper's T1 to T5. Kernel times are those of the
//! recording ([`PricedGraph::measured`]), or prices of each kernel call by a GPU's profile ([`device`]).
#![forbid(unsafe_code)]

mod demand;
pub mod device;
pub mod host;
pub mod network;
pub mod overheads;
mod priced_graph;

pub use demand::{Demand, Demands, Multiprocessor};
pub use host::captured::CapturedDelays;
pub use host::error::{Error, ProbeError, ProfileError};
pub use host::fit::{Training, fit as fit_host};
pub use host::gaps::{Gap, GapTable, Gaps};
pub use host::host_device_delays::Coupling;
pub use host::price::{GapSources, GuessedCopies, HostCosts};
pub use host::probe::{HostPace, Probe};
pub use host::profile::{HostProfile, TYPICAL_SLOWNESS};
pub use host::profile_gaps::UsualGaps;
pub use host::profiler::{Process, ProfilerCost};
pub use host::recorded_gaps::waits_for_device;
pub use host::slowness::Slowness;
pub use host::speed::{Elasticity, Pace, Speed};
pub use priced_graph::PricedGraph;
