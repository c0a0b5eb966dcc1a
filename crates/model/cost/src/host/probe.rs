//! Speed of a host by the pieces of steps, as measured by the recorder's probe.

use serde::{Deserialize, Serialize};
use steptime_graph::{MarkId, MarkKind, StepGraph};
use steptime_trace::Numbers;

use super::error::ProbeError;
use super::speed::Pace;
use super::versions;

/// Durations of pieces of host work in a process without any profiler, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Small training step on the CPU: ops and their autograd.
    pub step_cpu_us: f64,
    /// The same step on the GPU, if there is one: with launches.
    pub step_gpu_us: f64,
    /// Launch of a kernel with the op around it.
    pub launch_us: f64,
    /// Hand-off to the thread of the backward pass and back.
    pub hand_offs_us: f64,
    /// Pageable copy of 64 KiB to the GPU.
    pub copy_us: f64,
}

impl Default for Probe {
    /// Values for the host of the shipped profile, from its gaps relative to those of hosts with a probe.
    fn default() -> Probe {
        Probe { step_cpu_us: 714.0, step_gpu_us: 1430.0, launch_us: 4.6, hand_offs_us: 129.0, copy_us: 6.4 }
    }
}

/// Exponent of a probe's pieces on a pulse's time.
const FOLLOWS: f64 = 0.65;

/// Size of the probe's pageable copy, bytes.
const COPY_BYTES: f64 = 65536.0;

impl Probe {
    /// Returns its fields by name.
    pub(crate) fn numbers(&self) -> [(&'static str, f64); 5] {
        [
            ("step_cpu_us", self.step_cpu_us),
            ("step_gpu_us", self.step_gpu_us),
            ("launch_us", self.launch_us),
            ("hand_offs_us", self.hand_offs_us),
            ("copy_us", self.copy_us),
        ]
    }

    /// Creates it from its fields, in the order of [`numbers`](Probe::numbers).
    pub(crate) fn from_array(
        [step_cpu_us, step_gpu_us, launch_us, hand_offs_us, copy_us]: [f64; 5],
    ) -> Probe {
        Probe { step_cpu_us, step_gpu_us, launch_us, hand_offs_us, copy_us }
    }

    /// Creates it from a recorder's numbers, at the pace of its pulses for un-profiled steps, else at that of the whole
    /// probe: a probe alone sees the host for a moment. `None` if a piece is missing: a machine without a GPU has no
    /// launches.
    pub fn from_numbers(numbers: &Numbers, pulses: &Numbers) -> Option<Probe> {
        let slower = pace_of_steps(numbers, pulses).powf(FOLLOWS);
        let of = |name: &str| {
            let us = *numbers.get(name)?.first()?;
            (us.is_finite() && us > 0.0).then_some(us)
        };
        let copy = || {
            let at = numbers.get("copies.bytes")?.iter().position(|&bytes| bytes == COPY_BYTES)?;
            numbers.get("copies.pageable_to_gpu_us")?.get(at).copied().filter(|&us| us > 0.0)
        };
        Some(Probe {
            step_cpu_us: of("before.step_cpu_us")? * slower,
            step_gpu_us: of("before.step_gpu_us")? * slower,
            launch_us: of("before.launch_us")? * slower,
            hand_offs_us: (of("before.hand_off_us")? + of("before.hand_back_us")?) * slower,
            copy_us: copy()?,
        })
    }

    /// Reads the file of `python -m steptime.probe`; `None` if the text is not such a file.
    ///
    /// # Errors
    /// The defect of the file, and the remedy.
    pub fn parse(text: &str) -> Option<Result<Probe, ProbeError>> {
        let table: toml::Table = toml::from_str(text).ok()?;
        let version = table.get("probe_version")?;
        match version.as_integer() {
            Some(versions::PROBE) => {}
            Some(other) => return Some(Err(ProbeError::Version(other))),
            None => return Some(Err(ProbeError::NoVersion)),
        }
        let mut numbers = Numbers::new();
        for (phase, pieces) in &table {
            for (name, value) in pieces.as_table().into_iter().flatten() {
                let one =
                    |value: &toml::Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
                let list = match value {
                    toml::Value::Array(values) => values.iter().filter_map(one).collect(),
                    other => one(other).into_iter().collect(),
                };
                numbers.insert(format!("{phase}.{name}"), list);
            }
        }
        let probe = Probe::from_numbers(&numbers, &Numbers::new());
        Some(probe.ok_or(ProbeError::Incomplete))
    }

    /// Returns the factors by which this host takes longer than another.
    pub fn relative_to(&self, reference: &Probe) -> HostPace {
        let steps =
            (self.step_cpu_us * self.step_gpu_us / (reference.step_cpu_us * reference.step_gpu_us)).sqrt();
        HostPace {
            between: steps,
            launch: self.launch_us / reference.launch_us,
            hand_off: self.hand_offs_us / reference.hand_offs_us,
            copy: self.copy_us / reference.copy_us,
        }
    }
}

/// Returns the slowness of a host during steps relative to the first phase of its probe; 1 without data.
fn pace_of_steps(probe: &Numbers, pulses: &Numbers) -> f64 {
    let loops = |phase: &str| {
        probe.get(&format!("{phase}.loop_us")).and_then(|us| us.first().copied()).filter(|&us| us > 0.0)
    };
    let Some(first) = loops("before") else { return 1.0 };
    let steps = Pace::from_pulses(pulses, "before").map(Pace::typical);
    let phases: Vec<f64> = ["before", "under", "after"].iter().filter_map(|phase| loops(phase)).collect();
    steps.unwrap_or(phases.iter().sum::<f64>() / phases.len() as f64) / first
}

/// Factors on the gaps of a profile, by kind of gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostPace {
    /// Factor on gaps between calls.
    pub between: f64,
    /// Factor on launching calls.
    pub launch: f64,
    /// Factor on hand-offs between threads.
    pub hand_off: f64,
    /// Factor on staged copies.
    pub copy: f64,
}

impl Default for HostPace {
    fn default() -> HostPace {
        HostPace { between: 1.0, launch: 1.0, hand_off: 1.0, copy: 1.0 }
    }
}

impl HostPace {
    /// Multiplies all factors.
    #[must_use]
    pub fn slowed(&self, times: f64) -> HostPace {
        HostPace {
            between: self.between * times,
            launch: self.launch * times,
            hand_off: self.hand_off * times,
            copy: self.copy * times,
        }
    }

    /// Returns the factor of a gap.
    pub fn gap_factor(&self, graph: &StepGraph, mark: MarkId) -> f64 {
        match graph.marks[mark].kind {
            _ if graph.is_hand_off(mark) => self.hand_off,
            MarkKind::CallEnd(call) if graph.calls[call].is_pageable_copy(graph) => self.copy,
            MarkKind::CallEnd(call) if graph.calls[call].kind.launches() => self.launch,
            _ => self.between,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "probe_version = 1\n[before]\nstep_cpu_us = 2000.0\nstep_gpu_us = 3000\nlaunch_us = 10.0\n\
        hand_off_us = 140.0\nhand_back_us = 60.0\n[copies]\nbytes = [4096, 65536]\npageable_to_gpu_us = [7.0, 11.0]\n";

    #[test]
    fn a_probe_s_file_is_read_and_compared() {
        let probe = Probe::parse(FILE).unwrap().unwrap();
        assert_eq!((probe.hand_offs_us, probe.copy_us), (200.0, 11.0));
        let half = Probe { step_cpu_us: 1000.0, step_gpu_us: 1500.0, launch_us: 5.0, ..probe };
        let pace = probe.relative_to(&half);
        assert_eq!((pace.between, pace.launch, pace.hand_off), (2.0, 2.0, 1.0));
        assert_eq!(pace.slowed(1.5).between, 3.0);
    }

    #[test]
    fn a_probe_is_brought_to_the_pace_of_the_steps_beside_it() {
        let one = |name: &str, us: f64| (name.to_owned(), vec![us]);
        let pieces = [
            one("before.step_cpu_us", 1000.0),
            one("before.step_gpu_us", 2000.0),
            one("before.launch_us", 5.0),
            one("before.hand_off_us", 60.0),
            one("before.hand_back_us", 40.0),
            one("before.loop_us", 20.0),
            one("copies.bytes", COPY_BYTES),
            one("copies.pageable_to_gpu_us", 7.0),
        ];
        let numbers: Numbers = pieces.into();
        let alone = Probe::from_numbers(&numbers, &Numbers::new()).unwrap();
        assert_eq!((alone.step_cpu_us, alone.hand_offs_us), (1000.0, 100.0), "as it was measured");
        let pulses: Numbers = [one("before_loop_us", 40.0)].into();
        let beside = Probe::from_numbers(&numbers, &pulses).unwrap();
        let slower = 2.0f64.powf(FOLLOWS);
        assert!((beside.step_cpu_us / 1000.0 - slower).abs() < 1e-9, "{beside:?}");
        assert_eq!(beside.copy_us, 7.0, "copies move memory: they do not follow the pace");
    }

    #[test]
    fn what_is_no_probe_or_lacks_a_gpu_is_told_apart() {
        assert!(Probe::parse("version = 2\n").is_none());
        assert!(
            Probe::parse(&FILE.replace("_version = 1", "_version = 9")) == Some(Err(ProbeError::Version(9)))
        );
        let text = Probe::parse(&FILE.replace("_version = 1", "_version = \"one\""));
        assert_eq!(text, Some(Err(ProbeError::NoVersion)));
        let error = Probe::parse(&FILE.replace("launch_us", "lunch_us")).unwrap().unwrap_err();
        assert_eq!(error, ProbeError::Incomplete);
        assert!(error.to_string().contains("machine with the GPU"), "{error}");
    }
}
