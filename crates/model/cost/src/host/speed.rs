//! Speed of the host while it was profiled, and in the predicted steps.

use serde::{Deserialize, Serialize};
use steptime_graph::{MarkId, MarkKind, Role, StepGraph};
use steptime_trace::{Nanos, Numbers};

/// Dependence of host work on the speed of its core, as measured by a pulse: exponents on the pulse's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elasticity {
    /// Time of a pulse's loop on a host whose short gaps take the profile's times, and whose profiler costs the known values,
    /// microseconds.
    pub loop_us: f64,
    /// Exponent of gaps between calls.
    pub between: f64,
    /// Exponent of launching calls.
    pub launch: f64,
    /// Exponent of hand-offs between threads.
    pub hand_off: f64,
    /// Exponent of the profiler's own cost.
    pub profiler: f64,
}

impl Elasticity {
    /// Returns its fields by name.
    pub(crate) fn numbers(&self) -> [(&'static str, f64); 5] {
        [
            ("loop_us", self.loop_us),
            ("between", self.between),
            ("launch", self.launch),
            ("hand_off", self.hand_off),
            ("profiler", self.profiler),
        ]
    }
}

impl Default for Elasticity {
    /// Fitted to recordings on three hosts with an H200.
    fn default() -> Elasticity {
        Elasticity { loop_us: 20.0, between: 0.5, launch: 0.3, hand_off: 0.1, profiler: 1.0 }
    }
}

/// Slowness of short gaps on the main thread and on that of the backward pass, relative to a profile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slowness {
    /// Slowness on the main thread; `None` if too few gaps were measured.
    pub main: Option<f64>,
    /// Slowness on the thread of the backward pass.
    pub backward: Option<f64>,
}

/// Ratio of a pulse's loop that runs once, right after a step, to a repeated one.
const RIGHT_AFTER: f64 = 1.2;

/// Times of a pulse's loop on the main thread and on that of the backward pass, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Time on the main thread.
    pub main: f64,
    /// Time on the thread of the backward pass.
    pub backward: f64,
}

impl Pace {
    /// Returns the pace of the pulses taken `before` any profiler or among `profiled` steps; `None` without any.
    pub(crate) fn from_pulses(pulses: &Numbers, when: &str) -> Option<Pace> {
        let main = mean(pulses.get(&format!("{when}_loop_us")))?;
        let backward = mean(pulses.get(&format!("{when}_backward_loop_us"))).unwrap_or(main);
        // The recorder's first version repeated the loop.
        let repeated = if pulses.contains_key("profiled_whole_us") { 1.0 / RIGHT_AFTER } else { 1.0 };
        Some(Pace { main, backward }.times(repeated))
    }

    /// Returns the pulses' pace on a host with this slowness of gaps; the usual one if nothing is known.
    fn from_slowness(slowness: &Slowness, elasticity: &Elasticity) -> Pace {
        let main = slowness.main.or(slowness.backward).unwrap_or(1.0);
        Pace { main, backward: slowness.backward.unwrap_or(main) }.times(elasticity.loop_us)
    }

    /// Returns one value for both threads.
    pub(crate) fn typical(self) -> f64 {
        (self.main * self.backward).sqrt()
    }

    /// Returns the geometric mean of two.
    fn between(self, other: Pace) -> Pace {
        Pace { main: (self.main * other.main).sqrt(), backward: (self.backward * other.backward).sqrt() }
    }

    fn times(self, factor: f64) -> Pace {
        Pace { main: self.main * factor, backward: self.backward * factor }
    }
}

/// Pace of the host while it was profiled, and in the predicted steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Pace of the profiled steps.
    pub profiled: Pace,
    /// Pace of the un-profiled steps before them.
    pub wanted: Pace,
    /// Duration of the pulse between two profiled steps: it is in the trace, and in no step.
    pub between: Nanos,
}

impl Speed {
    /// Computes the speed from a recording's pulses, and the slowness of its gaps: both measure the pace while profiling, with
    /// independent errors. `None` without pulses.
    pub fn from_pulses(pulses: &Numbers, slowness: &Slowness, elasticity: &Elasticity) -> Option<Speed> {
        let (wanted, profiled) =
            (Pace::from_pulses(pulses, "before")?, Pace::from_pulses(pulses, "profiled")?);
        Some(Speed {
            profiled: profiled.between(Pace::from_slowness(slowness, elasticity)),
            wanted,
            between: between_steps(pulses),
        })
    }

    /// Speed of a host that kept the pace of its gaps.
    pub fn steady(slowness: &Slowness, elasticity: &Elasticity) -> Speed {
        let pace = Pace::from_slowness(slowness, elasticity);
        Speed { profiled: pace, wanted: pace, between: Nanos::ZERO }
    }

    /// Returns the distance between the pace to predict and that while profiling: the larger of both threads' ratios, as the
    /// logarithm of a factor.
    pub fn distance(&self) -> f64 {
        let away = |wanted: f64, profiled: f64| (wanted / profiled).ln().abs();
        away(self.wanted.main, self.profiled.main).max(away(self.wanted.backward, self.profiled.backward))
    }

    /// Returns the factor on the profiler's events on the thread of a gap.
    pub fn profiler_factor(&self, graph: &StepGraph, mark: MarkId, elasticity: &Elasticity) -> f64 {
        (self.pick(graph, mark, self.profiled) / elasticity.loop_us).powf(elasticity.profiler)
    }

    /// Returns the factor on a gap without the profiler's cost.
    pub fn gap_factor(&self, graph: &StepGraph, mark: MarkId, elasticity: &Elasticity) -> f64 {
        let exponent = match graph.marks[mark].kind {
            _ if graph.is_hand_off(mark) => elasticity.hand_off,
            MarkKind::CallEnd(call) if graph.calls[call].kind.launches() => elasticity.launch,
            _ => elasticity.between,
        };
        (self.pick(graph, mark, self.wanted) / self.pick(graph, mark, self.profiled)).powf(exponent)
    }

    fn pick(&self, graph: &StepGraph, mark: MarkId, pace: Pace) -> f64 {
        match graph.threads[graph.marks[mark].thread].role {
            Role::Autograd => pace.backward,
            Role::Main | Role::Other => pace.main,
        }
    }
}

/// Returns the duration of a pulse between two profiled steps.
pub fn between_steps(pulses: &Numbers) -> Nanos {
    // The recorder's first version ran only the main thread's loop between profiled steps.
    let whole = middle(pulses.get("profiled_whole_us"));
    let us = whole.or_else(|| middle(pulses.get("between_profiled_loop_us"))).unwrap_or(0.0);
    Nanos::from_micros_f64(us)
}

/// Ratio to the median above which a pulse was interrupted: the two speeds of a core are 1.7 apart.
const INTERRUPTED: f64 = 2.5;

/// Mean of times above zero, without those of interrupted pulses.
fn mean(times: Option<&Vec<f64>>) -> Option<f64> {
    let most = middle(times)? * INTERRUPTED;
    let usable: Vec<f64> = times?.iter().copied().filter(|&us| us > 0.0 && us <= most).collect();
    (!usable.is_empty()).then(|| usable.iter().sum::<f64>() / usable.len() as f64)
}

/// Median of times above zero.
fn middle(times: Option<&Vec<f64>>) -> Option<f64> {
    let mut usable: Vec<f64> = times?.iter().copied().filter(|&us| us > 0.0).collect();
    usable.sort_by(f64::total_cmp);
    usable.get(usable.len() / 2).copied()
}

/// Multiplies a time.
pub(crate) fn times(gap: Nanos, factor: f64) -> Nanos {
    Nanos((gap.0 as f64 * factor).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Slowness = Slowness { main: Some(2.0), backward: None };

    fn pulses(whole: &[f64]) -> Numbers {
        [
            ("before_loop_us", vec![20.0, 28.0]),
            ("before_backward_loop_us", vec![18.0]),
            ("profiled_loop_us", vec![30.0, 30.0]),
            ("profiled_backward_loop_us", vec![36.0]),
            ("profiled_whole_us", whole.to_vec()),
        ]
        .map(|(name, times)| (name.to_owned(), times))
        .into()
    }

    #[test]
    fn pulses_and_gaps_tell_the_pace_while_profiling_and_pulses_the_one_wanted() {
        let elasticity = Elasticity { loop_us: 20.0, ..Elasticity::default() };
        let speed = Speed::from_pulses(&pulses(&[200.0, 210.0, 900.0]), &SLOW, &elasticity).unwrap();
        assert!((speed.profiled.main - (25.0f64 * 40.0).sqrt()).abs() < 1e-9, "{speed:?}");
        assert!((speed.profiled.backward - (30.0f64 * 40.0).sqrt()).abs() < 1e-9, "{speed:?}");
        assert!((speed.wanted.main - 20.0).abs() < 1e-9 && (speed.wanted.backward - 15.0).abs() < 1e-9);
        assert_eq!(speed.between, Nanos(210_000));
        let mut first = pulses(&[]);
        first.remove("profiled_whole_us");
        let old = Speed::from_pulses(&first, &SLOW, &elasticity).unwrap();
        assert_eq!((old.wanted.main, old.between), (24.0, Nanos::ZERO), "each repeated: {old:?}");
    }

    #[test]
    fn an_interrupted_pulse_does_not_slow_the_host() {
        let mut interrupted = pulses(&[200.0]);
        interrupted.insert("before_loop_us".to_owned(), vec![20.0, 28.0, 24.0, 24.0, 620.0]);
        let speed = Speed::from_pulses(&interrupted, &SLOW, &Elasticity::default()).unwrap();
        assert!((speed.wanted.main - 20.0).abs() < 1e-9, "{speed:?}");
    }

    #[test]
    fn a_recording_without_pulses_has_no_pace() {
        assert_eq!(Speed::from_pulses(&Numbers::new(), &SLOW, &Elasticity::default()), None);
    }

    #[test]
    fn a_steady_host_is_as_slow_as_its_gaps() {
        let elasticity = Elasticity::default();
        let speed = Speed::steady(&SLOW, &elasticity);
        assert!((speed.profiled.backward - 2.0 * elasticity.loop_us).abs() < 1e-9);
        assert_eq!(speed.distance(), 0.0);
        assert_eq!(Speed::steady(&Slowness::default(), &elasticity).profiled.main, elasticity.loop_us);
    }
}
