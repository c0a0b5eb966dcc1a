//! Gives every gap of a graph its time: from its own samples, or from a profile.

use steptime_graph::{Blocking, MarkId, MarkKind, StepGraph, TiVec};
use steptime_trace::Nanos;

use super::captured::{self, CapturedDelays};
use super::copies::Staging;
use super::gap_key::LEVELS;
use super::host_device_delays::Coupling;
use super::profile::HostProfile;
use super::profile_gaps::UsualGaps;
use super::profiler::{Process, ProfilerCost};
use super::speed::{Elasticity, Speed, times};
use super::{device_sync, recorded_gaps};

/// Priced host side of a step.
#[derive(Debug, Clone)]
pub struct HostCosts {
    /// Time of each gap, mark by mark; inside calls that wait for the device their own work after the device is done, and zero inside
    /// copies that wait.
    pub gaps: TiVec<MarkId, Nanos>,
    /// Delays between host and device.
    pub coupling: Coupling,
    /// Whether the delays of single copies and queued activities are the recording's own; else they are those of
    /// `coupling`, except for delays too long to be overhead.
    pub recorded_delays: bool,
    /// Profiler's part of the recorded lead of a pageable copy.
    pub lead_excess: Nanos,
    /// Half-width of the 90 % interval of the host's speed, relative.
    pub spread: f64,
    /// Sources of the times.
    pub found: GapSources,
    /// Delays of parts of captured graphs.
    pub captured: CapturedDelays,
}

/// Staged copies larger than any in a profile's fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GuessedCopies {
    /// Number of copies.
    pub copies: usize,
    /// Their cost together, known to a factor of two.
    pub time: Nanos,
}

/// Number of gaps by source of their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GapSources {
    /// Gaps from the recording's own samples.
    pub own: usize,
    /// Gaps from a profile, by level of the matching context ([`super::gap_key::LEVEL_NAMES`]).
    pub profile: [usize; LEVELS],
    /// Gaps with neither samples nor a profile entry: they take no time in the simulation.
    pub unpriced: usize,
    /// Copies larger than any in the profile's fit.
    pub guessed: GuessedCopies,
}

/// Half-width of the 90 % interval of a step's host time if it comes from the recording itself: the host's
/// drift between the profiled and the un-profiled steps, and the uncertainty of the profiler's cost.
const OWN_SPREAD: f64 = 0.06;

/// Greatest ratio to the expected time, and greatest excess over it, of an ordinary gap.
const ORDINARY: f64 = 3.0;
const ORDINARY_US: f64 = 30.0;

impl HostCosts {
    /// Prices from the recording's own samples, without the profiler's cost.
    pub fn from_own_samples(graph: &StepGraph, profiler: &ProfilerCost, fallback: &Coupling) -> HostCosts {
        let lead_excess = Nanos::from_micros_f64(profiler.copy_us);
        HostCosts::from_gaps(graph, recorded_gaps::gaps(graph, profiler), lead_excess, fallback)
    }

    /// Prices from the same, scaled from the host's speed while profiled to its speed in the predicted steps.
    pub fn from_own_samples_at(
        graph: &StepGraph,
        profiler: &ProfilerCost,
        fallback: &Coupling,
        speed: &Speed,
        elasticity: &Elasticity,
    ) -> HostCosts {
        let slow = (speed.profiled.main / elasticity.loop_us).powf(elasticity.profiler);
        let lead_excess = Nanos::from_micros_f64(profiler.copy_us * slow);
        HostCosts::from_gaps(
            graph,
            recorded_gaps::gaps_at(graph, profiler, speed, elasticity),
            lead_excess,
            fallback,
        )
    }

    /// Prices a typical step as recorded, the profiler's cost left in.
    pub fn profiled(graph: &StepGraph, fallback: &Coupling) -> HostCosts {
        HostCosts::from_gaps(graph, recorded_gaps::typical_gaps(graph), Nanos::ZERO, fallback)
    }

    fn from_gaps(
        graph: &StepGraph,
        gaps: TiVec<MarkId, Option<Nanos>>,
        lead_excess: Nanos,
        fallback: &Coupling,
    ) -> HostCosts {
        let coupling = Coupling::measure(graph, fallback);
        let work = device_sync::own_work(graph, &coupling);
        let mut found = GapSources::default();
        let mut gaps: TiVec<MarkId, Nanos> = gaps
            .into_iter_enumerated()
            .map(|(mark, gap)| match gap {
                Some(gap) => {
                    found.own += 1;
                    gap.max(Nanos::ZERO)
                }
                None if recorded_gaps::waits_for_device(graph, mark) => match graph.marks[mark].kind {
                    MarkKind::CallEnd(call) => work.get(&call).copied().unwrap_or(Nanos::ZERO),
                    _ => Nanos::ZERO,
                },
                // A single step has no gap to the next.
                None if graph.marks[mark].wraps && graph.samples.steps().len() == 1 => Nanos::ZERO,
                None => {
                    found.unpriced += 1;
                    Nanos::ZERO
                }
            })
            .collect();
        // Collected in place: half of it is room of what may be missing.
        gaps.shrink_to_fit();
        let captured = CapturedDelays { leads: captured::recorded_leads(graph), between: Vec::new() };
        HostCosts { gaps, coupling, recorded_delays: true, lead_excess, spread: OWN_SPREAD, found, captured }
    }

    /// Prices from a profile: no overhead of the graph's own samples is used.
    pub fn from_profile(graph: &StepGraph, profile: &HostProfile, process: Process) -> HostCosts {
        HostCosts::from_usual(graph, profile, process, &UsualGaps::find(graph, profile))
    }

    /// Prices from a profile's values of each gap.
    pub fn from_usual(
        graph: &StepGraph,
        profile: &HostProfile,
        process: Process,
        usual: &UsualGaps,
    ) -> HostCosts {
        // A process that was never profiled has none of the cost that a finished profiler leaves in a process.
        let left = match process {
            Process::Profiled => vec![Nanos::ZERO; graph.marks.len()].into(),
            Process::Fresh => profile.attached.gap_costs(graph),
        };
        let mut found = GapSources::default();
        let mut gaps: TiVec<MarkId, Nanos> = (usual.0.iter_enumerated())
            .map(|(mark, usual)| {
                if recorded_gaps::waits_for_device(graph, mark) {
                    return Nanos::ZERO;
                }
                if let Some(cost) = staged_copy(graph, mark, profile) {
                    found.profile[0] += 1;
                    if cost.guessed {
                        found.guessed.copies += 1;
                        found.guessed.time += cost.time;
                    }
                    return times(cost.time, profile.pace.copy);
                }
                match usual {
                    Some(usual) => {
                        found.profile[usual.level] += 1;
                        let gap = Nanos::from_micros_f64(usual.us);
                        let pace = profile.pace.gap_factor(graph, mark);
                        times(ProfilerCost::take_off(gap, left[mark]), pace)
                    }
                    None => {
                        found.unpriced += 1;
                        Nanos::ZERO
                    }
                }
            })
            .collect();
        let mut captured = CapturedDelays::default();
        profile.captured.apply(graph, &mut gaps, &mut captured);
        HostCosts {
            gaps,
            coupling: profile.coupling,
            recorded_delays: false,
            lead_excess: Nanos::ZERO,
            spread: profile.spread,
            found,
            captured,
        }
    }

    /// Returns the ratio of the graph's own gaps to these costs: the slowness of its host.
    ///
    /// Outside 0.85 to 1.15 the host was fast or slow while recording. `None` without samples.
    pub fn slowness_of(&self, graph: &StepGraph, profiler: &ProfilerCost) -> Option<f64> {
        self.slowness_where(graph, profiler, |_, _| true)
    }

    /// Returns the same for ordinary gaps alone: a far longer one is work, or a sleep, that the profile does not contain.
    pub fn ordinary_slowness_of(&self, graph: &StepGraph, profiler: &ProfilerCost) -> Option<f64> {
        self.slowness_where(graph, profiler, |own, gap| own <= ORDINARY * gap + ORDINARY_US)
    }

    fn slowness_where(
        &self,
        graph: &StepGraph,
        profiler: &ProfilerCost,
        counts: impl Fn(f64, f64) -> bool,
    ) -> Option<f64> {
        let (mut own_sum, mut sum) = (0.0, 0.0);
        for (gap, own) in self.gaps.iter().zip(recorded_gaps::gaps(graph, profiler)) {
            if let Some(own) = own.filter(|own| counts(own.as_micros(), gap.as_micros())) {
                own_sum += own.as_micros();
                sum += gap.as_micros();
            }
        }
        (sum > 0.0).then(|| own_sum / sum)
    }
}

fn staged_copy(graph: &StepGraph, mark: MarkId, profile: &HostProfile) -> Option<Staging> {
    if !recorded_gaps::is_staged_copy(graph, mark) {
        return None;
    }
    match graph.marks[mark].kind {
        MarkKind::CallEnd(call) => {
            let call = &graph.calls[call];
            debug_assert_eq!(call.blocking, Blocking::Never);
            profile.copies.staging(graph.activities[call.first_activity].bytes)
        }
        _ => None,
    }
}
