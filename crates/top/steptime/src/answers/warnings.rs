//! What the user should know of a prediction before believing it.

use steptime_aten::kernel::{Kernel, Precision};
use steptime_graph::{StepGraph, StepSource};
use steptime_trace::Nanos;

use super::shares::ModelShares;
use super::words::{counted, percent};
use crate::asked::DeviceAsked;
use crate::device::PricedLaunches;

/// Relative speeds of the host that nobody needs to hear of.
const ORDINARY: std::ops::RangeInclusive<f64> = 0.85..=1.15;
/// Below this share of matched events the steps do not repeat.
const ALIKE_PERMILLE: usize = 950;

/// A share of device activities without their launch that nobody needs to hear of.
const UNLINKED: f64 = 0.02;

/// Shares of device time that nobody needs to hear of: out of the fitted range, and of ops that are not known.
const EXTRAPOLATED: f64 = 0.02;
const BY_BYTES: f64 = 0.01;
/// Of device time, how much float32 products take that somebody needs to hear of.
const IN_FLOAT32: f64 = 0.2;

/// Of a step without any host time, priced for a host `times` as slow as a machine.
pub fn of_assumed_host(times: f64, machine: &str) -> String {
    format!(
        "no host times in an execution trace: a typical host stands in, {times} times as slow as {machine}. Yours may \
         take half or twice as long: `python -m steptime.probe -o my-host.toml` measures it, for --host my-host.toml"
    )
}

/// Of float32 products, where nothing says whether TF32 was allowed and a device has it.
pub fn of_precision(priced: &PricedLaunches) -> Option<String> {
    let (mut all, mut products) = (Nanos::ZERO, Nanos::ZERO);
    for (launch, estimate) in priced.launches.iter().zip(&priced.prices.estimates) {
        all += estimate.time;
        if matches!(&launch.call.kernel, Kernel::Gemm(gemm) if gemm.precision == Precision::F32) {
            products += estimate.time;
        }
    }
    (products.0 as f64 > IN_FLOAT32 * all.0 as f64).then(|| {
        let ms = products.as_millis();
        format!("not recorded whether in TF32: {ms:.3} ms of products, taken without (--tf32)")
    })
}

/// Of how the steps were found.
pub fn of_graph(graph: &StepGraph) -> Vec<String> {
    let mut warnings = Vec::new();
    match graph.step_source {
        StepSource::Marked => {}
        StepSource::Repeated => warnings.push("no step marks: steps were found by repetition".into()),
        StepSource::Whole => {
            warnings.push("no step marks and no repetition: the whole trace is taken for one step".into())
        }
    }
    let coverage = &graph.coverage;
    let unlinked = coverage.activities.saturating_sub(coverage.activities_linked);
    if unlinked as f64 > UNLINKED * coverage.activities as f64 {
        warnings.push(format!(
            "{unlinked} of {} device activities were launched before the recording began, or by calls that it lacks: left out",
            coverage.activities
        ));
    }
    if graph.coverage.marks_matched_permille < ALIKE_PERMILLE {
        let share = percent(graph.coverage.marks_matched_permille as f64 / 1000.0);
        warnings.push(format!("the steps differ: {share} of their host events match the typical step"));
    }
    warnings
}

/// Of the prices.
pub fn of_prices(slowness: Option<f64>, unpriced: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(slowness) = slowness.filter(|s| !ORDINARY.contains(s)) {
        warnings
            .push(format!(
                "the host took {slowness:.2} times the profile's time: slow or fast while recording, or another kind of host"
            ));
    }
    if unpriced > 0 {
        warnings
            .push(format!("{} on the host without a price: taken to cost nothing", counted(unpriced, "gap")));
    }
    warnings
}

/// Of kernel times for a device.
pub fn of_device(device: &DeviceAsked, coverage: Option<&ModelShares>) -> Vec<String> {
    let mut warnings = Vec::new();
    if !device.fitted {
        warnings.push(format!(
            "no kernel was measured on {}: times come from its specification and models of another GPU",
            device.name
        ));
    }
    let Some(coverage) = coverage else { return warnings };
    let by_bytes = coverage.fallback + coverage.unknown;
    if by_bytes > BY_BYTES {
        let remedy = if coverage.unknown > BY_BYTES {
            "; shapes are missing: record an execution trace beside the Kineto trace"
        } else {
            ""
        };
        warnings.push(format!("{} of device time is of ops that are not known{remedy}", percent(by_bytes)));
    }
    for (share, how) in
        [(coverage.measured, "kept as measured"), (coverage.scaled, "scaled from the GPU recorded on")]
    {
        if share > BY_BYTES {
            warnings.push(format!(
                "{} of device time is {how}: its ops are not known or their shapes are missing (an execution trace \
                 beside the Kineto trace has them)",
                percent(share)
            ));
        }
    }
    if coverage.extrapolated > EXTRAPOLATED {
        warnings.push(format!(
            "{} of device time is of kernels unlike those that models were fitted on: rougher than the others",
            percent(coverage.extrapolated)
        ));
    }
    warnings
}
