//! Doubt: device work without a price.

use std::collections::BTreeMap;

use steptime_cost::device::Source;
use steptime_graph::StepGraph;

use super::Doubt;
use crate::pricing::PricedLaunches;
use crate::step::Step;
use crate::time_sources::Kernels;
use crate::uncertainty::uncertainty;

/// Maximum number of ops that the text names.
const NAMED: usize = 3;

/// The doubt, where too much of the device work has no price.
pub(super) fn doubt(
    recorded: &Step,
    kernels: &Kernels<'_>,
    device: Option<&PricedLaunches>,
) -> Option<Doubt> {
    let (Kernels::Device { profile, .. }, Some(device)) = (kernels, device) else { return None };
    let unpriced = device.prices.unpriced;
    if unpriced.share <= uncertainty().doubts.unpriced.no_estimate {
        return None;
    }
    let graph = &recorded.graph;
    let measured = if recorded.arguments.is_derived() { "launches" } else { "the measured device work" };
    let mut text = format!(
        "{:.0} % of {measured} ({} of {}) cannot be priced on {}: a single time would be a guess",
        100.0 * unpriced.share,
        unpriced.launches,
        device.launches.len(),
        profile.spec.name,
    );
    let names = names(graph, device);
    if !names.is_empty() {
        text.push_str(&format!(" (mostly {})", names[..names.len().min(NAMED)].join(", ")));
    }
    text.push_str(&remedy(recorded, unpriced.shapeless));
    let width = unpriced.share * uncertainty().unknown.work;
    Some(Doubt { kind: "unpriced", text, below: width, above: width, no_estimate: true })
}

/// Describes a step's launches without a model, whatever their share: their number, their ops, and how they are priced.
pub fn without_model(graph: &StepGraph, device: &PricedLaunches) -> Option<String> {
    let unpriced = device.prices.unpriced;
    if unpriced.launches == 0 {
        return None;
    }
    let coverage = &device.prices.coverage;
    let names = names(graph, device);
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len() - more].join(", ");
    let of = match (names.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({shown})"),
        _ => format!(" ({shown} and {more} more ops)"),
    };
    let remedy = if unpriced.shapeless {
        "; shapes are missing: record an execution trace beside the Kineto trace"
    } else {
        ""
    };
    Some(format!(
        "{} of {} launches have no model{of}: their {:.1} % of device time is estimated from bytes alone, and may be several times as much{remedy}",
        unpriced.launches,
        device.launches.len(),
        100.0 * (coverage.fallback + coverage.unknown),
    ))
}

/// Remedy for work without a price.
fn remedy(recorded: &Step, shapeless: bool) -> String {
    let from =
        recorded.graph.device.as_deref().filter(|name| !name.is_empty()).unwrap_or("a GPU without a name");
    match (recorded.arguments.is_derived(), shapeless) {
        (true, _) => "; record the step on a GPU to use its measured times".into(),
        (false, true) => format!(
            "; shapes are missing, and {from} has no profile to scale from: record an execution trace beside the \
             Kineto trace"
        ),
        (false, false) => format!("; these ops are not known, and {from} has no profile to scale from"),
    }
}

/// Ops of the work without a price, most expensive first.
fn names(graph: &StepGraph, device: &PricedLaunches) -> Vec<String> {
    let mut time: BTreeMap<&str, i64> = BTreeMap::new();
    for (launch, estimate) in device.launches.iter().zip(&device.prices.estimates) {
        if let (Source::Fallback | Source::Unknown, Some(op)) = (estimate.source, launch.op) {
            *time.entry(graph.op_name(op)).or_default() += estimate.time.0;
        }
    }
    let mut all: Vec<(&str, i64)> = time.into_iter().collect();
    all.sort_by_key(|&(name, time)| (std::cmp::Reverse(time), name));
    all.into_iter().map(|(name, _)| name.to_owned()).collect()
}
