//! The host side of a step: from its own times, from a profile, or as profiled.

use steptime_cost::{HostCosts, Process, Slowness, Speed, UsualGaps};
use steptime_trace::Origin;

use crate::shipped_host::{default_host, own_constants};
use crate::step::Step;
use crate::time_sources::Host;
use crate::uncertainty::uncertainty;

/// Prices the host side of a graph.
pub fn host_costs(recorded: &Step, host: &Host<'_>) -> HostCosts {
    host_side(recorded, recorded.process, host).0
}

/// Prices the host side of a graph; also returns its own host gaps relative to those in use, or else to the shipped profile's.
pub(crate) fn host_side(recorded: &Step, process: Process, host: &Host<'_>) -> (HostCosts, Option<f64>) {
    let graph = &recorded.graph;
    match host {
        Host::Own if recorded.origin != Origin::Train => own(recorded, process),
        // Without a profiler the times as recorded are those of the step.
        Host::Own | Host::Profiled => (HostCosts::profiled(graph, &own_constants(process).1), None),
        Host::Profile(profile) => {
            let costs = HostCosts::from_profile(graph, profile, process);
            let slowness = costs.slowness_of(graph, profile.profiler_of(process));
            (costs, slowness)
        }
    }
}

/// Prices the host side from the recording's own samples: brought to the pace of its un-profiled steps where pulses give
/// both, else with the profiler's known cost scaled by the slowness of the host.
fn own(recorded: &Step, process: Process) -> (HostCosts, Option<f64>) {
    let graph = &recorded.graph;
    let (profiler, coupling) = own_constants(process);
    let Ok(profile) = default_host() else {
        return (HostCosts::from_own_samples(graph, &profiler, &coupling), None);
    };
    let usual = UsualGaps::find(graph, profile);
    let elasticity = &profile.elasticity;
    let slowness = Slowness::while_profiled(graph, profile, &usual);
    let pulses =
        recorded.meta.as_ref().and_then(|meta| Speed::from_pulses(&meta.pulses, &slowness, elasticity));
    let known = pulses.is_some();
    let speed = pulses.unwrap_or_else(|| Speed::steady(&slowness, elasticity));
    let mut costs = HostCosts::from_own_samples_at(graph, &profiler, &coupling, &speed, elasticity);
    profile.captured.take_off(graph, &mut costs.gaps, &mut costs.captured);
    let own = &uncertainty().host;
    costs.spread = match process {
        Process::Profiled => costs.spread,
        Process::Fresh if known => costs.spread.hypot(own.pace).hypot(own.pace_share * speed.distance()),
        Process::Fresh => costs.spread.hypot(own.pace_without_pulses),
    };
    let shipped = HostCosts::from_usual(graph, profile, process, &usual);
    (costs, shipped.slowness_of(graph, profile.profiler_of(process)))
}

/// Slowness of a recording's host, by its ordinary gaps relative to the shipped profile; `None` where it has none.
pub(crate) fn ordinary_slowness(recorded: &Step) -> Option<f64> {
    let (graph, process) = (&recorded.graph, recorded.process);
    let profile = default_host().ok()?;
    let usual = UsualGaps::find(graph, profile);
    let shipped = HostCosts::from_usual(graph, profile, process, &usual);
    shipped.ordinary_slowness_of(graph, profile.profiler_of(process))
}
