//! Doubt: the replay of the profiled step, with the profiler's cost left in, differs from the recorded step.

use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use super::Doubt;
use crate::format::counted;
use crate::replay::SelfCheck;
use crate::uncertainty::uncertainty;

/// The doubt, where the replay's period or its device active time differs from the recording.
pub(crate) fn doubt(graph: &StepGraph, check: &SelfCheck) -> Option<Doubt> {
    let (period, active) = (check.error(), check.active_error());
    let threshold = uncertainty().doubts.replay.threshold;
    // Where the device sets the pace, an error of its active time is an error of the step.
    let busy = check.active_recorded.0 as f64 / check.recorded.0.max(1) as f64;
    let active_in_step = active * busy;
    if period.abs() <= threshold && active_in_step.abs() <= threshold {
        return check.by_host.and_then(|host| uneven(check, host));
    }
    let in_period = period.abs() >= active_in_step.abs();
    let (what, simulated, recorded, error) = if in_period {
        ("the profiled step", check.typical, check.recorded, period)
    } else {
        ("the device active time", check.active_typical, check.active_recorded, active)
    };
    let worst = if in_period { period } else { active_in_step };
    let text = format!(
        "replayed with the profiler's cost, {what} takes {:.3} ms, but {:.3} ms were recorded ({:+.0} %): {}",
        simulated.as_millis(),
        recorded.as_millis(),
        100.0 * error,
        cause(graph, check),
    );
    let width = (1.0 + worst).max(1e-3).ln();
    // If the replay is too short, the step may be longer, and vice versa.
    Some(Doubt { kind: "replay", text, below: width.max(0.0), above: (-width).max(0.0), no_estimate: false })
}

/// The doubt, where the host ran ahead of the device and its marks have another period.
fn uneven(check: &SelfCheck, host: Nanos) -> Option<Doubt> {
    let of = &uncertainty().doubts.replay;
    let ratio = check.recorded.0 as f64 / host.0.max(1) as f64;
    ((ratio - 1.0).abs() > of.threshold).then(|| Doubt {
        kind: "replay",
        text: format!(
            "the host ran ahead of the device: the host's marks are {:.3} ms apart, the ends of the steps' kernels {:.3} ms; the latter is \
             taken as the step time",
            host.as_millis(),
            check.recorded.as_millis(),
        ),
        below: ratio.ln().max(0.0) * of.uneven_share,
        above: (-ratio.ln()).max(0.0) * of.uneven_share,
        no_estimate: false,
    })
}

/// Most likely cause of a difference between a replay and its recording, from known ones.
fn cause(graph: &StepGraph, check: &SelfCheck) -> String {
    let of = &uncertainty().doubts.replay;
    let coverage = &graph.coverage;
    let unlinked = coverage.activities - coverage.activities_linked;
    if !check.single && check.each_error.abs() <= of.threshold && check.unrest > of.unsteady {
        return format!(
            "the recorded steps differ by {:.0} %: record more steps, after warm-up",
            100.0 * check.unrest
        );
    }
    if coverage.marks_matched_permille < 900 {
        return format!(
            "the recorded steps are not alike ({:.0} % of their ops and calls match): record steps of one shape",
            coverage.marks_matched_permille as f64 / 10.0
        );
    }
    if unlinked * 20 > coverage.activities {
        return format!(
            "{unlinked} of {} device activities have no call that launched them",
            coverage.activities
        );
    }
    if coverage.late.0 as f64 > of.threshold * check.recorded.0 as f64 {
        return format!(
            "{} began {:.3} ms late on an idle GPU, as when a kernel's code is loaded: record after warm-up",
            counted(coverage.late_starts, "kernel"),
            coverage.late.as_millis(),
        );
    }
    let unknown = coverage.waits_inferred + coverage.waits_refuted;
    if unknown > 0 && unknown * 2 > coverage.stream_waits {
        return format!(
            "{} waits between streams have no known target: concurrent kernels are inferred",
            coverage.stream_waits
        );
    }
    if check.unrest > of.unsteady {
        return format!("the recorded steps differ by {:.0} %", 100.0 * check.unrest);
    }
    if check.single {
        return "the recording has a single step, and the work before it is not known: record several steps"
            .into();
    }
    "the cause of a wait in the step is not known".into()
}
