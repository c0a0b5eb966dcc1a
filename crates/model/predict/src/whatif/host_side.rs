//! Host times of a changed step: as recorded where the same marks follow one another, else from a profile, scaled to
//! the pace of the recording's host.

use steptime_cost::{CapturedDelays, HostCosts, UsualGaps};
use steptime_graph::{ApiKind, CallId, MarkKind, TiVec};
use steptime_step::ScheduledStep;
use steptime_trace::{Bytes, Nanos};

use super::{Base, ModifiedStep, Pricing, parameters};
use crate::error::Error;
use crate::shipped_host::default_host;
use crate::step::Step;
use crate::time_sources::{FACTORS, Host};
use crate::uncertainty::uncertainty;

/// The host side of a changed step.
pub(super) fn price(
    recorded: &Step,
    pricing: &Pricing<'_>,
    edited: &ModifiedStep,
    base: &Base,
) -> Result<HostCosts, Error> {
    let (step, scheduled) = (&edited.step, &edited.scheduled);
    let (graph, costs) = (&scheduled.graph, &base.host);
    let profile = match &pricing.host {
        Host::Profile(profile) => {
            let usual = UsualGaps::find(graph, profile);
            return Ok(HostCosts::from_usual(graph, profile, pricing.process, &usual));
        }
        Host::Own | Host::Profiled => default_host()?,
    };
    let carried = &scheduled.carried;
    let is_new = carried.gaps.iter().any(|same| !same) || carried.calls.iter().any(Option::is_none);
    let usual = is_new.then(|| {
        let usual = UsualGaps::find(graph, profile);
        HostCosts::from_usual(graph, profile, pricing.process, &usual)
    });
    let pace = base.slowness.unwrap_or(1.0);
    let (mut own, mut priced) = (0.0, 0.0);
    let gaps = carried.gaps.iter_enumerated().map(|(mark, &same)| {
        let was = carried.marks[mark].filter(|_| same).or(carried.like[mark]);
        match (was.and_then(|was| costs.gaps.get(was)), &usual) {
            (Some(&gap), _) => {
                own += gap.as_micros();
                gap
            }
            (None, Some(usual)) => {
                let gap = Nanos((usual.gaps[mark].0 as f64 * pace).round() as i64);
                priced += gap.as_micros();
                gap
            }
            (None, None) => Nanos::ZERO,
        }
    });
    let gaps: TiVec<_, Nanos> = gaps.collect();
    let share = priced / (own + priced).max(f64::MIN_POSITIVE);
    let mut costs = HostCosts {
        gaps,
        spread: costs.spread.hypot(uncertainty().host.priced * share),
        captured: captured(scheduled, costs),
        ..costs.clone()
    };
    copies(recorded, scheduled, &mut costs, pace)?;
    parameters::scale(&recorded.graph, step, scheduled, &mut costs);
    if scheduled
        .graph
        .calls
        .iter_enumerated()
        .any(|(at, call)| call.kind == ApiKind::GraphLaunch && carried.calls[at].is_none())
    {
        profile.captured.apply(graph, &mut costs.gaps, &mut costs.captured);
    }
    Ok(costs)
}

/// Scales all host times by a factor.
///
/// # Errors
/// Fails where the factor is out of range.
pub(super) fn slow(costs: &mut HostCosts, times: f64) -> Result<(), Error> {
    if !FACTORS.contains(&times) {
        return Err(Error::HostFactor { times });
    }
    let scale = |gap: &mut Nanos| *gap = Nanos((gap.0 as f64 * times).round() as i64);
    costs.gaps.iter_mut().for_each(scale);
    costs.captured.leads.iter_mut().for_each(|(_, lead)| scale(lead));
    Ok(())
}

/// Delays of captured graphs' parts, for those that are still present.
fn captured(scheduled: &ScheduledStep, costs: &HostCosts) -> CapturedDelays {
    let carried = &scheduled.carried;
    let call =
        |was: CallId| carried.calls.iter_enumerated().find(|(_, at)| **at == Some(was)).map(|(at, _)| at);
    let leads = costs.captured.leads.iter().filter_map(|&(was, lead)| Some((call(was)?, lead))).collect();
    let mut now = CapturedDelays { leads, ..CapturedDelays::default() };
    if !costs.captured.between.is_empty() {
        let of: rustc_hash::FxHashMap<_, _> =
            carried.activities.iter_enumerated().filter_map(|(now, was)| Some(((*was)?, now))).collect();
        let between = costs.captured.between.iter();
        now.between = between.filter_map(|(was, delay)| Some((*of.get(was)?, *delay))).collect();
    }
    now
}

/// Scales staged copies of changed size by the profile's ratio.
fn copies(recorded: &Step, scheduled: &ScheduledStep, costs: &mut HostCosts, pace: f64) -> Result<(), Error> {
    let staging = &default_host()?.copies;
    let us = |bytes: Bytes| staging.staging(bytes).map(|cost| cost.time.as_micros());
    let graph = &scheduled.graph;
    for (at, call) in graph.calls.iter_enumerated() {
        let Some(was) = scheduled.carried.calls[at] else { continue };
        if !call.is_pageable_copy(graph) || graph.marks[call.end].kind != MarkKind::CallEnd(at) {
            continue;
        }
        let old = &recorded.graph.calls[was];
        let bytes = [
            recorded.graph.activities[old.first_activity].bytes,
            graph.activities[call.first_activity].bytes,
        ];
        if bytes[0] == bytes[1] && old.blocking == call.blocking {
            continue;
        }
        let waited = steptime_cost::waits_for_device(&recorded.graph, old.end);
        let waits = steptime_cost::waits_for_device(graph, call.end);
        costs.gaps[call.end] = match (us(bytes[0]), us(bytes[1])) {
            _ if waits => Nanos::ZERO,
            (Some(before), Some(after)) if !waited && before > 0.0 => {
                Nanos((costs.gaps[call.end].0 as f64 * after / before).round() as i64)
            }
            (_, Some(after)) => Nanos::from_micros_f64(after * pace),
            _ => costs.gaps[call.end],
        };
    }
    Ok(())
}
