//! Fitting a correction of what a profile says of one family.

use std::collections::{BTreeMap, BTreeSet};

use steptime_aten::KernelCall;

use super::FitOptions;
use super::signature::groups;
use crate::device::context::{Context, Setting};
use crate::device::families;
use crate::device::family::Family;
use crate::device::learn::boost::{BoostOptions, boost};
use crate::device::learn::conformal::{Detail, Interval};
use crate::device::learn::cross::Folds;
use crate::device::learn::error::LearnError;
use crate::device::learn::score::{Score, quantile};
use crate::device::learn::table::Table;
use crate::device::learn::trees::Trees;
use crate::device::observation::Observation;
use crate::device::price::ModelChoice;
use crate::device::profile::DeviceProfile;
use crate::device::profile::header::{IntervalScore, KindScore, StageHeader};
use crate::device::stage::{self, Kind, Stage};
use crate::device::variant::variant;

/// Of a kind with fewer rows nothing is said: neither a correction nor an interval.
const ROWS_OF_A_KIND: usize = 24;
/// From so few cases no kind is judged.
const CASES_OF_A_KIND: usize = 6;
/// How much of a correction may be taken; what is best on held-out cases is.
const SHARES: [f32; 4] = [0.0, 0.4, 0.7, 1.0];
/// A larger share must lower the error by so much, relative, to be taken: no change without evidence.
const EVIDENCE: f64 = 0.02;

/// A stage, and what a profile says of it.
pub type StageFit = (StageHeader, Stage);

/// Learns what the rows of a family show beyond the profile; `None` where they are too few to say anything.
pub fn fit(
    observations: &[&Observation],
    profile: &DeviceProfile,
    options: &FitOptions,
) -> Result<Option<StageFit>, LearnError> {
    let Some(first) = observations.first() else { return Ok(None) };
    let family = families::of(&first.call.kernel);
    let (rows, kinds) = judged(observations, |row| stage::kind_of(family, &row.call));
    if rows.is_empty() {
        return Ok(None);
    }
    let left = Left::of(&rows, family, profile);
    let folds = Folds::new(&groups(&rows), options.folds, options.seed);
    if folds.count() < 3 {
        return Ok(None);
    }
    let boosting = boosting(rows.len(), options.seed);
    let (held_out, trees) = rayon::join(
        || {
            folds.out_of_fold(|train, held_out| {
                let corrections = left.learn(train, &boosting)?.predict(&left.table.select(held_out));
                Ok::<_, LearnError>(corrections.into_iter().map(f64::from).collect())
            })
        },
        || left.learn(&(0..rows.len()).collect::<Vec<usize>>(), &boosting),
    );
    let (held_out, trees) = (held_out?, trees?);

    let mut residuals = left.logs.clone();
    let (mut told, mut seen) = (BTreeMap::new(), BTreeMap::new());
    for (name, of_kind) in &kinds {
        let score = left.best_share(of_kind, &held_out);
        of_kind.iter().for_each(|&row| residuals[row] -= f64::from(score.share) * held_out[row]);
        told.insert(name.clone(), score);
        let ranges = left.table.select(of_kind).ranges();
        seen.insert(name.clone(), Kind { share: score.share, ranges });
    }
    let variants: Vec<String> = rows.iter().map(|row| variant(&row.call)).collect();
    let names: Vec<&str> = variants.iter().map(String::as_str).collect();
    let interval = Interval::fit(&left.table, &residuals, &folds, &names, Detail::Fine)?;
    let Interval { inside, half_width, shared, .. } = interval;
    let in_steps = rows.iter().any(|row| row.ctx.setting == Setting::Step);
    let score = |residuals: &[f64]| Score::of_residuals(residuals).ok_or(LearnError::NoScore);
    let header = StageHeader {
        rows: rows.len(),
        cases: rows.iter().map(|row| row.case).collect::<BTreeSet<u32>>().len(),
        trees: trees.len(),
        in_steps,
        before: score(&left.logs)?,
        after: score(&residuals)?,
        interval: IntervalScore { inside, half_width, shared },
        features: stage::names(family).map(str::to_owned).collect(),
        kinds: told,
    };
    let by_step = by_step(&calls(&rows), profile);
    Ok(Some((header, Stage { trees, interval, in_steps, by_step, kinds: seen })))
}

fn calls<'o>(rows: &[&'o Observation]) -> Vec<(&'o KernelCall, &'o Context)> {
    rows.iter().map(|row| (&row.call, &row.ctx)).collect()
}

/// What a profile leaves of rows: the features that a correction may go by, and logarithms of measured over predicted.
struct Left {
    table: Table,
    logs: Vec<f64>,
}

impl Left {
    fn of(rows: &[&Observation], family: &dyn Family, profile: &DeviceProfile) -> Left {
        let calls = calls(rows);
        let before = profile.price_all(&calls, ModelChoice::Best);
        let mut table = Table::new(stage::names(family).count());
        for (&(call, ctx), before) in calls.iter().zip(&before) {
            table.push(|out| stage::features(family, call, ctx, &profile.spec, before.time, out));
        }
        let over = |measured: f64, before: f64| (measured / before.max(1e-3)).ln();
        let pairs = rows.iter().zip(&before);
        let logs = pairs.map(|(row, before)| over(row.time.as_micros(), before.time.as_micros())).collect();
        Left { table, logs }
    }

    /// Trees that correct what is left of some rows.
    fn learn(&self, rows: &[usize], boosting: &BoostOptions) -> Result<Trees, LearnError> {
        let target: Vec<f64> = rows.iter().map(|&row| self.logs[row]).collect();
        boost(&self.table.select(rows), &target, &vec![1.0; rows.len()], boosting)
    }

    /// How much of the corrections, which had not seen them, is best for the rows of a kind.
    fn best_share(&self, of_kind: &[usize], corrections: &[f64]) -> KindScore {
        let with = |share: f32| {
            let residuals = of_kind.iter().map(|&row| self.logs[row] - f64::from(share) * corrections[row]);
            mean_error(residuals, of_kind.len())
        };
        let before = with(0.0);
        let (share, after) = SHARES.into_iter().fold((0.0, before), |best, share| {
            let error = with(share);
            if error < best.1 * (1.0 - EVIDENCE) { (share, error) } else { best }
        });
        KindScore { rows: of_kind.len(), share, before, after }
    }
}

/// The usual range of what the profile adds for being inside a step, to logarithms of times.
fn by_step(calls: &[(&KernelCall, &Context)], profile: &DeviceProfile) -> [f64; 2] {
    let inside: Vec<Context> =
        calls.iter().map(|&(_, ctx)| Context { setting: Setting::Step, ..ctx.clone() }).collect();
    let after: Vec<Context> =
        calls.iter().map(|&(_, ctx)| Context { setting: Setting::After, ..ctx.clone() }).collect();
    let price = |contexts: &[Context]| {
        let calls: Vec<(&KernelCall, &Context)> =
            calls.iter().zip(contexts).map(|(call, ctx)| (call.0, ctx)).collect();
        profile.price_all(&calls, ModelChoice::Best)
    };
    let added: Vec<f64> = price(&inside)
        .iter()
        .zip(price(&after))
        .map(|(inside, alone)| (inside.time.as_micros().max(1e-3) / alone.time.as_micros().max(1e-3)).ln())
        .collect();
    [quantile(&added, 0.1), quantile(&added, 0.9)].map(|end| if end.is_finite() { end } else { 0.0 })
}

/// The rows of all kinds that have enough of them, from enough cases, and which rows are of which kind. Rows of kinds with
/// too few to be judged are not learnt from either.
fn judged<'o>(
    observations: &[&'o Observation],
    kind: impl Fn(&Observation) -> String,
) -> (Vec<&'o Observation>, BTreeMap<String, Vec<usize>>) {
    let kinds = kinds(observations, kind);
    let judged: BTreeSet<usize> = kinds.values().flatten().copied().collect();
    let rows: Vec<&Observation> = judged.iter().map(|&at| observations[at]).collect();
    let place: BTreeMap<usize, usize> = judged.iter().enumerate().map(|(new, &old)| (old, new)).collect();
    let kinds =
        kinds.into_iter().map(|(name, at)| (name, at.iter().map(|old| place[old]).collect())).collect();
    (rows, kinds)
}

/// The rows of each kind that has enough of them, from enough cases.
fn kinds(
    observations: &[&Observation],
    kind: impl Fn(&Observation) -> String,
) -> BTreeMap<String, Vec<usize>> {
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, row) in observations.iter().enumerate() {
        kinds.entry(kind(row)).or_default().push(at);
    }
    let enough = |rows: &[usize]| {
        let cases: BTreeSet<u32> = rows.iter().map(|&row| observations[row].case).collect();
        rows.len() >= ROWS_OF_A_KIND && cases.len() >= CASES_OF_A_KIND
    };
    kinds.retain(|_, rows| enough(rows));
    kinds
}

/// The mean error of residuals, relative to what was measured.
fn mean_error(residuals: impl Iterator<Item = f64>, count: usize) -> f64 {
    residuals.map(|residual| ((-residual).exp() - 1.0).abs()).sum::<f64>() / count.max(1) as f64
}

/// Fewer and smaller trees than a family's first ones: most of it is known already, and leaves of few rows are drawn to zero.
fn boosting(rows: usize, seed: u64) -> BoostOptions {
    let options = BoostOptions { seed, shrink: 3.0, rows: 4.0, ..BoostOptions::default() };
    match rows {
        0..400 => BoostOptions { trees: 120, depth: 4, leaves: 10, ..options },
        400..2000 => BoostOptions { trees: 200, depth: 6, leaves: 20, ..options },
        2000..10_000 => BoostOptions { trees: 300, leaves: 40, depth: 8, rounds: 6, ..options },
        10_000..40_000 => BoostOptions { trees: 320, leaves: 64, depth: 10, rounds: 8, ..options },
        _ => BoostOptions { trees: 320, leaves: 110, depth: 11, rounds: 8, ..options },
    }
}
