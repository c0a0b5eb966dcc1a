//! The host side of a step: by its own times, by a profile, or as it was profiled.

use steptime_cost::{HostCosts, Process, Slowness, Speed, UsualGaps};

use crate::shipped_host::{default_host, own_constants};
use crate::sources::Host;
use crate::step::Step;

/// Half-widths (relative, 90 %) of a fresh process's host time, for what is not known of the profiler's cost and of the
/// host's pace: with pulses, and without.
const PACE_SPREAD: f64 = 0.13;
const NO_PACE_SPREAD: f64 = 0.24;
/// The share of a change of pace (logarithm) by which a host may follow it more or less than others do.
const PACE_SHARE: f64 = 0.25;

/// Prices the host side of a graph.
pub fn host_costs(recorded: &Step, host: &Host<'_>) -> HostCosts {
    host_side(recorded, recorded.process, host).0
}

/// The host side of a graph, priced; and its own host gaps relative to those in use, or else to the shipped profile's.
pub(crate) fn host_side(recorded: &Step, process: Process, host: &Host<'_>) -> (HostCosts, Option<f64>) {
    let graph = &recorded.graph;
    match host {
        Host::Own => own(recorded, process),
        Host::Profiled => (HostCosts::profiled(graph, &own_constants(process).1), None),
        Host::Profile(profile) => {
            let costs = HostCosts::from_profile(graph, profile, process);
            let slowness = costs.slowness_of(graph, profile.profiler_of(process));
            (costs, slowness)
        }
    }
}

/// The host side from the recording's own samples: brought to the pace of its un-profiled steps where pulses tell
/// both, else with the profiler's cost as many times what is known of it as the host was slow.
fn own(recorded: &Step, process: Process) -> (HostCosts, Option<f64>) {
    let graph = &recorded.graph;
    let (profiler, coupling) = own_constants(process);
    let Ok(profile) = default_host() else { return (HostCosts::own(graph, &profiler, &coupling), None) };
    let usual = UsualGaps::of(graph, profile);
    let elasticity = &profile.elasticity;
    let slowness = Slowness::while_profiled(graph, profile, &usual);
    let pulses =
        recorded.meta.as_ref().and_then(|meta| Speed::of_pulses(&meta.pulses, &slowness, elasticity));
    let known = pulses.is_some();
    let speed = pulses.unwrap_or_else(|| Speed::steady(&slowness, elasticity));
    let mut costs = HostCosts::own_at(graph, &profiler, &coupling, &speed, elasticity);
    profile.captured.take_off(graph, &mut costs.gaps, &mut costs.captured);
    costs.spread = match process {
        Process::Profiled => costs.spread,
        Process::Fresh if known => costs.spread.hypot(PACE_SPREAD).hypot(PACE_SHARE * speed.distance()),
        Process::Fresh => costs.spread.hypot(NO_PACE_SPREAD),
    };
    let shipped = HostCosts::from_usual(graph, profile, process, &usual);
    (costs, shipped.slowness_of(graph, profile.profiler_of(process)))
}

/// How slow a recording's host was, by its ordinary gaps against those of the shipped profile; `None` where it has none.
pub(crate) fn ordinary_slowness(recorded: &Step) -> Option<f64> {
    let (graph, process) = (&recorded.graph, recorded.process);
    let profile = default_host().ok()?;
    let usual = UsualGaps::of(graph, profile);
    let shipped = HostCosts::from_usual(graph, profile, process, &usual);
    shipped.ordinary_slowness_of(graph, profile.profiler_of(process))
}
