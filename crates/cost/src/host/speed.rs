//! How fast the host was while it was profiled, and how fast it is in the steps that are predicted.

use serde::{Deserialize, Serialize};
use steptime_graph::{MarkKind, Role, StepGraph};
use steptime_trace::{Nanos, Numbers};

/// How host work follows the speed of its core, as a pulse shows it: exponents on the pulse's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elasticity {
    /// A pulse's loop at the speed that the profiler's cost is known for, microseconds.
    pub loop_us: f64,
    /// Of what lies between calls.
    pub between: f64,
    /// Of launching calls.
    pub launch: f64,
    /// Of hand-offs between threads.
    pub hand_off: f64,
    /// Of the profiler's own cost.
    pub profiler: f64,
}

impl Elasticity {
    /// All its numbers.
    pub(crate) fn numbers(&self) -> [f64; 5] {
        [self.loop_us, self.between, self.launch, self.hand_off, self.profiler]
    }
}

impl Default for Elasticity {
    /// Fitted to recordings on two hosts with an H200.
    fn default() -> Elasticity {
        Elasticity { loop_us: 17.6, between: 0.475, launch: 0.29, hand_off: 0.094, profiler: 0.731 }
    }
}

/// Times of a pulse's loop on the main thread and on that of the backward pass, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// On the main thread.
    pub main: f64,
    /// On the thread of the backward pass.
    pub backward: f64,
}

/// The host's pace while it was profiled, and in the steps that are predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Around the profiled steps.
    pub profiled: Pace,
    /// Around the un-profiled steps before them.
    pub wanted: Pace,
    /// The pulse between two profiled steps: it is in the trace, and in no step.
    pub between: Nanos,
}

impl Speed {
    /// From a recording's pulses; `None` where there are none.
    pub fn of_pulses(pulses: &Numbers) -> Option<Speed> {
        let mean = |name: &str| {
            let times = pulses.get(name)?;
            let usable: Vec<f64> = times.iter().copied().filter(|&us| us > 0.0).collect();
            (!usable.is_empty()).then(|| usable.iter().sum::<f64>() / usable.len() as f64)
        };
        let pace = |when: &str| {
            let main = mean(&format!("{when}_loop_us"))?;
            Some(Pace { main, backward: mean(&format!("{when}_backward_loop_us")).unwrap_or(main) })
        };
        let wanted = pace("before")?;
        let mut profiled = pace("profiled")?;
        // Between profiled steps the loop runs once, right after other work, as the first loop of each pulse does.
        let often = middle(pulses.get("between_profiled_loop_us"));
        if let (Some(now), Some(then)) = (often, mean("before_first_loop_us")) {
            // Pulses around the steps are steadier, those between them nearer: both count alike.
            profiled.main = (wanted.main * now / then * profiled.main).sqrt();
        }
        let between = Nanos::from_micros_f64(often.unwrap_or(0.0));
        Some(Speed { profiled, wanted, between })
    }

    /// A host that kept one pace, where the profiler's events cost `slowness` times what is known of them.
    pub fn steady(slowness: f64, elasticity: &Elasticity) -> Speed {
        let us = elasticity.loop_us * slowness.powf(1.0 / elasticity.profiler.max(0.1));
        let pace = Pace { main: us, backward: us };
        Speed { profiled: pace, wanted: pace, between: Nanos::ZERO }
    }

    /// How far the pace that is wanted lies from that while profiling: the larger of both threads' ratios, as the
    /// logarithm of a factor.
    pub fn distance(&self) -> f64 {
        let away = |wanted: f64, profiled: f64| (wanted / profiled).ln().abs();
        away(self.wanted.main, self.profiled.main).max(away(self.wanted.backward, self.profiled.backward))
    }

    /// How many times as dear the profiler's events were on the thread of a gap.
    pub fn of_profiler(&self, graph: &StepGraph, mark: u32, elasticity: &Elasticity) -> f64 {
        (self.pick(graph, mark, self.profiled) / elasticity.loop_us).powf(elasticity.profiler)
    }

    /// What to multiply a gap by, once the profiler's cost is off.
    pub fn of_gap(&self, graph: &StepGraph, mark: u32, elasticity: &Elasticity) -> f64 {
        let exponent = match graph.marks[mark as usize].kind {
            _ if graph.is_hand_off(mark) => elasticity.hand_off,
            MarkKind::CallEnd(call) if graph.calls[call as usize].kind.launches() => elasticity.launch,
            _ => elasticity.between,
        };
        (self.pick(graph, mark, self.wanted) / self.pick(graph, mark, self.profiled)).powf(exponent)
    }

    fn pick(&self, graph: &StepGraph, mark: u32, pace: Pace) -> f64 {
        match graph.threads[graph.marks[mark as usize].thread as usize].role {
            Role::Autograd => pace.backward,
            Role::Main | Role::Other => pace.main,
        }
    }
}

/// The middle one of times above zero.
fn middle(times: Option<&Vec<f64>>) -> Option<f64> {
    let mut usable: Vec<f64> = times?.iter().copied().filter(|&us| us > 0.0).collect();
    usable.sort_by(f64::total_cmp);
    usable.get(usable.len() / 2).copied()
}

/// A time multiplied.
pub(crate) fn times(gap: Nanos, factor: f64) -> Nanos {
    Nanos((gap.0 as f64 * factor).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulses(profiled: f64, between: f64) -> Numbers {
        [
            ("before_loop_us", vec![20.0, 20.0]),
            ("before_first_loop_us", vec![24.0]),
            ("before_backward_loop_us", vec![18.0]),
            ("profiled_loop_us", vec![profiled]),
            ("profiled_backward_loop_us", vec![36.0]),
            ("between_profiled_loop_us", vec![between, between, 900.0]),
        ]
        .map(|(name, times)| (name.to_owned(), times))
        .into()
    }

    #[test]
    fn pulses_between_and_around_profiled_steps_tell_the_main_thread_s_pace() {
        let speed = Speed::of_pulses(&pulses(10.0, 48.0)).unwrap();
        assert!((speed.profiled.main - 20.0).abs() < 1e-9, "40 between them, 10 around: {speed:?}");
        assert_eq!(speed.profiled.backward, 36.0);
        assert_eq!(speed.between, Nanos(48_000));
        assert!((speed.distance() - 2f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_recording_without_pulses_has_no_pace() {
        assert_eq!(Speed::of_pulses(&Numbers::new()), None);
    }

    #[test]
    fn a_steady_host_costs_as_many_times_as_it_is_slow() {
        let elasticity = Elasticity::default();
        let speed = Speed::steady(1.7, &elasticity);
        let times = (speed.profiled.main / elasticity.loop_us).powf(elasticity.profiler);
        assert!((times - 1.7).abs() < 1e-9);
        assert_eq!(speed.distance(), 0.0);
    }
}
