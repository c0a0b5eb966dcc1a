//! Prices (predicted times) of kernel calls by a profile.

use std::hash::{Hash, Hasher};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use steptime_aten::{Kernel, KernelCall};
use steptime_launch::Indices;
use steptime_trace::Nanos;

use super::bounds::Bounds;
use super::context::Context;
use super::correction;
use super::estimate::{Estimate, ModelKind, Source};
use super::extrapolation::{TOLERATED, belief, distance, widening};
use super::families;
use super::family::Family;
use super::learn::sizes::sizes;
use super::learn::table::Table;
use super::profile::header::FamilyHeader;
use super::profile::{DeviceProfile, FamilyModels};
use super::spec::DeviceSpec;
use super::transfer::Reference;
use super::unit_limits;
use super::variant::variant;

/// Least half-width of an unknown op's interval: its bytes predict its duration poorly.
const FALLBACK: f64 = 1.1;

/// Least number of distinct calls that are priced on several threads.
const MANY: usize = 64;

/// Models to price with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelChoice {
    /// For each family the best one on held-out rows.
    #[default]
    Best,
    /// Published models; calls that they do not cover are priced by steptime's formulas.
    Paper,
    /// Steptime's formulas with fitted factors.
    Analytic,
    /// Boosted trees; families without trees are priced by formula.
    Learnt,
}

impl ModelChoice {
    /// Returns the model of a family.
    fn pick(self, header: &FamilyHeader) -> ModelKind {
        match self {
            ModelChoice::Best => header.model,
            ModelChoice::Paper => ModelKind::Paper,
            ModelChoice::Analytic => ModelKind::Analytic,
            ModelChoice::Learnt => ModelKind::Learnt,
        }
    }
}

/// A call in its context, compared by value: the key of equal calls.
#[derive(Clone, Copy)]
pub(super) struct Key<'a>(pub(super) &'a KernelCall, pub(super) &'a Context);

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1 == other.1
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        self.1.reuse.hash(state);
        self.1.setting.hash(state);
        match &self.1.indices {
            Indices::Unknown => 0u8.hash(state),
            Indices::Uniform => 1u8.hash(state),
            Indices::Zipf(power) => power.to_bits().hash(state),
            Indices::FoldedZipf(power) => (2u8, power.to_bits()).hash(state),
            Indices::Histogram(shares) => shares.len().hash(state),
            Indices::Counts(counts) => counts.hash(state),
        }
    }
}

/// Calls of one family, to be priced together.
struct Group<'a> {
    family: &'static dyn Family,
    calls: Vec<(usize, Key<'a>)>,
}

impl<'a> Group<'a> {
    fn new(family: &'static dyn Family, calls: &[(&'a KernelCall, &'a Context)]) -> Group<'a> {
        let calls = calls.iter().enumerate().map(|(at, &(call, ctx))| (at, Key(call, ctx)));
        Group { family, calls: calls.collect() }
    }

    fn calls(&self) -> Vec<(&'a KernelCall, &'a Context)> {
        self.calls.iter().map(|&(_, Key(call, ctx))| (call, ctx)).collect()
    }
}

impl DeviceProfile {
    /// Returns the duration of a call.
    #[must_use]
    pub fn price(&self, call: &KernelCall, ctx: &Context, choice: ModelChoice) -> Estimate {
        self.price_all(&[(call, ctx)], choice)[0]
    }

    /// Returns the durations of many calls, in their order. Calls of a family are priced together, and equal calls only
    /// once: many times faster than one by one, with the same results. The duration of a call with several parts is
    /// the sum of theirs.
    #[must_use]
    pub fn price_all(&self, calls: &[(&KernelCall, &Context)], choice: ModelChoice) -> Vec<Estimate> {
        let split: Vec<Option<[(KernelCall, Context); 2]>> =
            calls.iter().map(|(call, ctx)| Some(call.parts()?.map(|part| ctx.for_part(part)))).collect();
        let mut whole = Vec::with_capacity(calls.len());
        for (&given, split) in calls.iter().zip(&split) {
            match split {
                None => whole.push(given),
                Some(parts) => whole.extend(parts.iter().map(|(call, ctx)| (call, ctx))),
            }
        }
        let mut priced = self.price_whole(&whole, choice).into_iter();
        let mut next = || priced.next().unwrap_or(Estimate::UNPRICED);
        split.iter().map(|split| if split.is_some() { next().plus(&next()) } else { next() }).collect()
    }

    fn price_whole(&self, calls: &[(&KernelCall, &Context)], choice: ModelChoice) -> Vec<Estimate> {
        let other: Vec<Option<KernelCall>> =
            calls.iter().map(|(call, _)| unit_limits::as_run(call, &self.spec)).collect();
        let run = calls.iter().zip(&other).map(|(&(call, ctx), other)| (other.as_ref().unwrap_or(call), ctx));
        self.price_as_run(&run.collect::<Vec<_>>(), choice)
    }

    fn price_as_run(&self, calls: &[(&KernelCall, &Context)], choice: ModelChoice) -> Vec<Estimate> {
        let mut seen: FxHashMap<Key, usize> = FxHashMap::default();
        let mut groups: Vec<Group> = Vec::new();
        let mut which = Vec::with_capacity(calls.len());
        for &(call, ctx) in calls {
            let next = seen.len();
            let at = *seen.entry(Key(call, ctx)).or_insert(next);
            which.push(at);
            if at < next {
                continue;
            }
            let family = families::find(&call.kernel);
            match groups.iter_mut().find(|group| group.family.name() == family.name()) {
                Some(group) => group.calls.push((at, Key(call, ctx))),
                None => groups.push(Group { family, calls: vec![(at, Key(call, ctx))] }),
            }
        }
        let mut distinct: Vec<Option<Estimate>> = vec![None; seen.len()];
        let price = |group: &Group| self.price_group(group, choice);
        // Starting threads takes longer than pricing a few calls.
        let priced: Vec<Vec<Estimate>> = if seen.len() < MANY {
            groups.iter().map(price).collect()
        } else {
            groups.par_iter().with_max_len(1).map(price).collect()
        };
        for (group, estimates) in groups.iter().zip(priced) {
            for (estimate, (at, _)) in estimates.into_iter().zip(&group.calls) {
                distinct[*at] = Some(estimate);
            }
        }
        which.into_iter().map(|at| distinct[at].unwrap_or(Estimate::UNPRICED)).collect()
    }

    fn price_group(&self, group: &Group, choice: ModelChoice) -> Vec<Estimate> {
        let Some(transferred) = &self.transferred else {
            return self.price_by_models(group, choice, &self.spec);
        };
        let widened = |estimates: Vec<Estimate>| -> Vec<Estimate> {
            estimates.into_iter().map(|estimate| transferred.widened(estimate)).collect()
        };
        if choice != ModelChoice::Best {
            return widened(self.price_by_models(group, choice, &self.spec));
        }
        let spec = &self.spec;
        let models = |calls: &[(&KernelCall, &Context)]| {
            widened(self.price_by_models(&Group::new(group.family, calls), choice, spec))
        };
        let again = |calls: &[(&KernelCall, &Context)]| {
            let corrected = transferred.corrected(group.family, calls, spec, models(calls), &models);
            transferred.beside_formulas(group.family, calls, spec, corrected)
        };
        let calls = group.calls();
        let layer = transferred.layer.family(group.family.name());
        let before = again(&calls);
        let mut estimates = correction::correct(layer, group.family, &calls, spec, before, &again);
        let bounds = self.bounds(group, &calls, choice, &transferred.references);
        for ((estimate, (call, _)), bounds) in estimates.iter_mut().zip(&calls).zip(bounds) {
            *estimate = bounds.clamp(*estimate);
            estimate.time = estimate.time.max(Nanos::from_micros_f64(unit_limits::least_us(call, spec)));
        }
        estimates
    }

    /// Returns the bounds of each call's duration on this GPU, from its durations on the measured GPUs.
    fn bounds(
        &self,
        group: &Group,
        calls: &[(&KernelCall, &Context)],
        choice: ModelChoice,
        references: &[Reference],
    ) -> Vec<Bounds> {
        let mut bounds = vec![Bounds::NONE; calls.len()];
        for Reference { spec, layer } in references {
            let models = |calls: &[(&KernelCall, &Context)]| {
                self.price_by_models(&Group::new(group.family, calls), choice, spec)
            };
            let before = self.price_by_models(group, choice, spec);
            let stages = layer.family(group.family.name());
            let there = correction::correct(stages, group.family, calls, spec, before, &models);
            for ((bounds, &(call, ctx)), there) in bounds.iter_mut().zip(calls).zip(there) {
                let us = there.time.as_micros().max(unit_limits::least_us(call, spec));
                *bounds = bounds.and(Bounds::new(call, ctx, us, spec, &self.spec));
            }
        }
        bounds
    }

    fn price_by_models(&self, group: &Group, choice: ModelChoice, spec: &DeviceSpec) -> Vec<Estimate> {
        match self.family(group.family.name()) {
            Some((header, models)) => {
                let fitted = self.price_fitted(group, header, models, choice, spec);
                if models.stages.is_empty() || choice.pick(header) != header.model {
                    return fitted;
                }
                let again = |calls: &[(&KernelCall, &Context)]| {
                    self.price_fitted(&Group::new(group.family, calls), header, models, choice, spec)
                };
                correction::correct(&models.stages, group.family, &group.calls(), spec, fitted, &again)
            }
            None => group
                .calls
                .iter()
                .map(|(_, key)| self.price_unfitted(group.family, *key, choice, spec))
                .collect(),
        }
    }

    /// Prices by formula and specification alone.
    fn price_unfitted(
        &self,
        family: &dyn Family,
        key: Key,
        choice: ModelChoice,
        spec: &DeviceSpec,
    ) -> Estimate {
        let Key(call, ctx) = key;
        let paper = match choice {
            ModelChoice::Paper => family.paper(call, ctx, spec),
            _ => None,
        };
        let us = paper.unwrap_or_else(|| family.analytic(call, ctx, spec));
        let unfitted = &self.unfitted;
        let (source, own) = match call.kernel {
            Kernel::Unknown => (Source::Fallback, unfitted.own.max(FALLBACK)),
            _ if paper.is_some() => (Source::Paper, unfitted.own),
            _ => (Source::Analytic, unfitted.own),
        };
        let time = Nanos::from_micros_f64(us);
        Estimate { time, own, shared: unfitted.shared, source, extrapolated: false }
    }

    fn price_fitted(
        &self,
        group: &Group,
        header: &FamilyHeader,
        models: &FamilyModels,
        choice: ModelChoice,
        spec: &DeviceSpec,
    ) -> Vec<Estimate> {
        let wanted = choice.pick(header);
        let mut table = Table::new(header.features.len());
        for (_, Key(call, ctx)) in &group.calls {
            table.push(|out| group.family.features(call, ctx, spec, out));
        }
        let trees = models.trees.as_ref().filter(|_| wanted == ModelKind::Learnt);
        let corrections = trees.map(|trees| trees.predict(&table));
        let scales = ModelKind::ALL.map(|kind| {
            let used = kind == wanted || kind == ModelKind::Analytic && (corrections.is_none());
            let interval = models.intervals[kind as usize].as_ref().filter(|_| used);
            interval.map(|interval| (interval, interval.scale.predict(&table)))
        });
        let price = |(row, (_, Key(call, ctx))): (usize, &(usize, Key))| {
            let distance = distance(table.row(row), &header.features);
            let analytic =
                || group.family.analytic(call, ctx, spec).ln() + header.calibration.offset(&variant(call));
            let paper = || match group.family.paper(call, ctx, spec) {
                Some(us) => Some(us.ln()),
                None => Some(models.network.as_ref()?.predict(&sizes(call)?)),
            };
            let (kind, log_us) = match (wanted, &corrections) {
                (ModelKind::Learnt, Some(corrections)) => {
                    (ModelKind::Learnt, analytic() + f64::from(corrections[row]) * belief(distance))
                }
                (ModelKind::Paper, _) => match paper() {
                    Some(log_us) if log_us.is_finite() => (ModelKind::Paper, log_us),
                    _ => (ModelKind::Analytic, analytic()),
                },
                _ => (ModelKind::Analytic, analytic()),
            };
            let unfitted = &self.unfitted;
            let (own, shared) = match &scales[kind as usize] {
                Some((interval, scales)) => interval.half_widths(scales[row]),
                None => (unfitted.own, unfitted.shared),
            };
            let (factor, more) = widening(distance);
            Estimate {
                time: Nanos::from_micros_f64(log_us.exp()),
                own: own * factor + more,
                shared,
                source: if kind == ModelKind::Paper { Source::Paper } else { Source::Fitted },
                extrapolated: distance > TOLERATED,
            }
        };
        group.calls.iter().enumerate().map(price).collect()
    }
}
