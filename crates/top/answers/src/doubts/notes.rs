//! Notes on the input or its prices that the reader has to know.

use steptime_aten::kernel::{Kernel, Precision};
use steptime_graph::{StepGraph, StepSource};
use steptime_predict::{
    DeviceEcho, Prediction, PricedLaunches, QueryEcho, Step,
    format::{counted, percent},
    uncertainty, without_model,
};
use steptime_trace::Nanos;

use super::DoubtEntry;
use crate::device_time_sources::ModelShares;

/// All notes, in the order in which a step is read, priced and predicted.
pub(super) fn all(asked: &QueryEcho, step: &Step, simulated: Option<&Prediction>) -> Vec<DoubtEntry> {
    let mut all = Vec::new();
    let mut add =
        |kind, texts: Vec<String>| all.extend(texts.into_iter().map(|text| DoubtEntry::note(kind, text)));
    let by_recorder = step.meta.iter().flat_map(|meta| &meta.warnings);
    add("recorder", by_recorder.map(|text| format!("at recording: {text}")).collect());
    add("ops", step.assumed.clone());
    if !step.arguments.is_derived() {
        add("steps", graph_notes(&step.graph));
    }
    add("repairs", step.repairs.iter().cloned().collect());
    let priced = simulated.and_then(|found| found.device.as_ref());
    if let (Some(device), Some(priced)) = (&asked.device, priced) {
        add("unpriced", without_model(&step.graph, priced).into_iter().collect());
        add("kernels", device_notes(&ModelShares::new(&priced.prices.coverage)));
        add("precision", unknown_precision(device, step, priced).into_iter().collect());
    }
    if let Some(found) = simulated {
        add("host", host_notes(found.slowness, found.found.unpriced));
    }
    all
}

/// Note on products that may have been in TF32, where neither the recorder nor a GPU's name says so.
fn unknown_precision(device: &DeviceEcho, step: &Step, priced: &PricedLaunches) -> Option<String> {
    let unknown = device.has_tf32 && step.arguments.is_derived() && step.matmul_tf32().is_none();
    unknown.then(|| allowed_precision(priced)).flatten()
}

/// Note on float32 products of a step that does not record whether TF32 was allowed, for a device that has it.
fn allowed_precision(priced: &PricedLaunches) -> Option<String> {
    let (mut all, mut products) = (Nanos::ZERO, Nanos::ZERO);
    for (launch, estimate) in priced.launches.iter().zip(&priced.prices.estimates) {
        all += estimate.time;
        if matches!(&launch.call.kernel, Kernel::Gemm(gemm) if gemm.precision == Precision::F32) {
            products += estimate.time;
        }
    }
    (products.0 as f64 > uncertainty().notes.float32_products * all.0 as f64).then(|| {
        let ms = products.as_millis();
        format!("use of TF32 is not recorded: {ms:.3} ms of products priced without it (--tf32)")
    })
}

/// Notes on how the steps were found.
pub(crate) fn graph_notes(graph: &StepGraph) -> Vec<String> {
    let mut warnings = Vec::new();
    match graph.step_source {
        StepSource::Marked => {}
        StepSource::Repeated => warnings.push("no step marks: steps were found by repetition".into()),
        StepSource::Whole => {
            warnings.push("no step marks and no repetition: the whole trace is taken as one step".into())
        }
    }
    let coverage = &graph.coverage;
    let unlinked = coverage.activities.saturating_sub(coverage.activities_linked);
    if unlinked as f64 > uncertainty().notes.unlinked * coverage.activities as f64 {
        warnings.push(format!(
            "{unlinked} of {} device activities are left out: they were launched before the recording began, or by calls that were not recorded",
            coverage.activities
        ));
    }
    if !coverage.steps_are_alike() {
        let share = percent(graph.coverage.marks_matched_permille as f64 / 1000.0);
        warnings.push(format!("the steps differ: {share} of their host events match the typical step"));
    }
    warnings
}

/// Notes on the host's times.
fn host_notes(slowness: Option<f64>, unpriced: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let ordinary = uncertainty().notes.host_fast..=uncertainty().notes.host_slow;
    if let Some(slowness) = slowness.filter(|s| !ordinary.contains(s)) {
        warnings
            .push(format!(
                "the host took {slowness:.2} times the profile's time: slow or fast while recording, or another kind of host"
            ));
    }
    if unpriced > 0 {
        warnings.push(format!("{} on the host without a price: counted as zero", counted(unpriced, "gap")));
    }
    warnings
}

/// Notes on kernel times for a device.
fn device_notes(coverage: &ModelShares) -> Vec<String> {
    let mut warnings = Vec::new();
    for (share, how) in
        [(coverage.measured, "kept as measured"), (coverage.scaled, "scaled from the GPU recorded on")]
    {
        if share > uncertainty().notes.stood_in {
            warnings.push(format!(
                "{} of device time is {how}: its ops have no model, or their shapes are missing (an execution trace beside the \
                 Kineto trace has them)",
                percent(share)
            ));
        }
    }
    if coverage.extrapolated > uncertainty().notes.extrapolated {
        warnings.push(format!(
            "{} of device time is of kernels outside the fitted range of their models: less certain than the others",
            percent(coverage.extrapolated)
        ));
    }
    warnings
}
