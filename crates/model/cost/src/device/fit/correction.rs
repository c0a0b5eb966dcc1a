//! Fits a correction of one family's prices in a profile.

use std::collections::{BTreeMap, BTreeSet};

use steptime_aten::KernelCall;

use super::FitOptions;
use super::signature::groups;
use crate::device::context::{Context, Setting};
use crate::device::correction::{self, Kind, Stage};
use crate::device::estimate::Estimate;
use crate::device::families;
use crate::device::family::{Family, SpecEstimate};
use crate::device::learn::boost::{BoostOptions, boost};
use crate::device::learn::conformal::{Detail, Interval};
use crate::device::learn::cross_validation::Folds;
use crate::device::learn::error::LearnError;
use crate::device::learn::score::{Score, quantile};
use crate::device::learn::table::Table;
use crate::device::learn::trees::Trees;
use crate::device::observation::Observation;
use crate::device::price::ModelChoice;
use crate::device::profile::DeviceProfile;
use crate::device::profile::header::{IntervalScore, KindScore, StageHeader};
use crate::device::variant::variant;

/// Least number of rows of a kind for a correction and an interval.
const ROWS_OF_A_KIND: usize = 24;
/// Least number of cases of a kind.
const CASES_OF_A_KIND: usize = 6;
/// Candidate shares of a correction; the best one on held-out cases is applied.
const SHARES: [f32; 4] = [0.0, 0.4, 0.7, 1.0];
/// Relative reduction of the error that a larger share must bring: no change without evidence.
const EVIDENCE: f64 = 0.02;

/// A stage, and its header in a profile.
pub type StageFit = (StageHeader, Stage);

/// A measured call, and the profile that priced it before.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub of: &'a Observation,
    /// Profile of its GPU.
    pub profile: &'a DeviceProfile,
    /// Number of its GPU.
    pub gpu: u32,
    /// Estimate by a formula of the specification next to the profile's transferred models.
    pub formula: Option<SpecEstimate>,
}

impl Row<'_> {
    /// Logarithm of measured over predicted, from that over the models' price. A formula with its own half-widths does not change that of the
    /// models.
    fn beside_formula(&self, of_models: f64) -> f64 {
        let Some(SpecEstimate { us, share, worth: None }) = self.formula else { return of_models };
        let of_formula = (self.of.time.as_micros() / us.max(1e-3)).ln();
        share * of_formula + (1.0 - share) * of_models
    }
}

/// Part that is held out to judge a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldOutPart {
    /// Cases of the swept GPU.
    Cases,
    /// Each GPU in turn, with all of its rows.
    Gpus,
}

/// Least number of GPUs with a kind for a stage to apply to it on others.
const GPUS_OF_A_KIND: usize = 3;

/// Learns a correction of the profiles' prices from the rows of a family; `None` if they are too few.
pub fn fit(
    rows: &[Row<'_>],
    held_out: HeldOutPart,
    options: &FitOptions,
) -> Result<Option<StageFit>, LearnError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let family = families::find(&first.of.call.kernel);
    let (rows, kinds) = judged(rows, held_out, |row| correction::kind_of(family, &row.of.call));
    if rows.is_empty() {
        return Ok(None);
    }
    let left = StageResiduals::measure(&rows, family);
    let observations: Vec<&Observation> = rows.iter().map(|row| row.of).collect();
    let gpus: Vec<u32> = rows.iter().map(|row| row.gpu).collect();
    let folds = match held_out {
        HeldOutPart::Cases => Folds::new(&groups(&observations), options.folds, options.seed),
        HeldOutPart::Gpus => Folds::new(&gpus, u8::MAX, options.seed),
    };
    if folds.count() < 3 {
        return Ok(None);
    }
    let boosting = match held_out {
        HeldOutPart::Cases => boosting(rows.len(), options.seed),
        HeldOutPart::Gpus => BoostOptions { seed: options.seed, ..FOR_OTHERS },
    };
    let weights = weights(&gpus);
    let (corrections, trees) = rayon::join(
        || {
            folds.out_of_fold(|train, held_out| {
                let trees = left.learn(train, &weights, &boosting)?;
                let corrections = trees.predict(&left.table.select(held_out));
                Ok::<_, LearnError>(corrections.into_iter().map(f64::from).collect())
            })
        },
        || left.learn(&(0..rows.len()).collect::<Vec<usize>>(), &weights, &boosting),
    );
    let (corrections, trees) = (corrections?, trees?);

    let mut residuals = left.logs.clone();
    let (mut told, mut seen) = (BTreeMap::new(), BTreeMap::new());
    for (name, of_kind) in &kinds {
        let score = left.best_share(of_kind, &corrections);
        of_kind.iter().for_each(|&row| residuals[row] -= f64::from(score.share) * corrections[row]);
        told.insert(name.clone(), score);
        let ranges = left.table.select(of_kind).ranges();
        seen.insert(name.clone(), Kind { share: score.share, ranges });
    }
    for (residual, row) in residuals.iter_mut().zip(&rows) {
        *residual = row.beside_formula(*residual);
    }
    let groups: Vec<String> = rows
        .iter()
        .map(|row| match held_out {
            HeldOutPart::Cases => variant(&row.of.call),
            HeldOutPart::Gpus => row.gpu.to_string(),
        })
        .collect();
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    let interval = Interval::fit(&left.table, &residuals, &folds, &names, Detail::Fine)?;
    let Interval { inside, half_width, shared, .. } = interval;
    let in_steps = rows.iter().any(|row| row.of.ctx.setting == Setting::Step);
    let score = |residuals: &[f64]| Score::from_residuals(residuals).ok_or(LearnError::NoScore);
    let header = StageHeader {
        rows: rows.len(),
        cases: rows.iter().map(|row| (row.gpu, row.of.case)).collect::<BTreeSet<(u32, u32)>>().len(),
        trees: trees.len(),
        in_steps,
        before: score(&left.logs)?,
        after: score(&residuals)?,
        interval: IntervalScore { inside, half_width, shared },
        features: correction::names(family).map(str::to_owned).collect(),
        kinds: told,
    };
    let by_step = by_step(&rows);
    Ok(Some((header, Stage { trees, interval, in_steps, by_step, kinds: seen })))
}

/// Weights by which the rows of each GPU count equally, whatever their number.
fn weights(gpus: &[u32]) -> Vec<f64> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    gpus.iter().for_each(|&gpu| *counts.entry(gpu).or_default() += 1);
    let even = gpus.len() as f64 / counts.len().max(1) as f64;
    gpus.iter().map(|gpu| even / counts[gpu] as f64).collect()
}

/// Prices of rows by their profiles, those of one GPU priced together.
fn priced(rows: &[Row<'_>], contexts: impl Fn(&Context) -> Context) -> Vec<Estimate> {
    let mut estimates = Vec::with_capacity(rows.len());
    for of_gpu in rows.chunk_by(|a, b| a.gpu == b.gpu) {
        let contexts: Vec<Context> = of_gpu.iter().map(|row| contexts(&row.of.ctx)).collect();
        let calls: Vec<(&KernelCall, &Context)> =
            of_gpu.iter().zip(&contexts).map(|(row, ctx)| (&row.of.call, ctx)).collect();
        estimates.extend(of_gpu[0].profile.price_all(&calls, ModelChoice::Best));
    }
    estimates
}

/// Residuals of rows after the profiles: the features for a correction, and logarithms of measured over predicted.
struct StageResiduals {
    table: Table,
    logs: Vec<f64>,
}

impl StageResiduals {
    fn measure(rows: &[Row<'_>], family: &dyn Family) -> StageResiduals {
        let before = priced(rows, Context::clone);
        let mut table = Table::new(correction::names(family).count());
        for (row, before) in rows.iter().zip(&before) {
            let (call, ctx, spec) = (&row.of.call, &row.of.ctx, &row.profile.spec);
            table.push(|out| correction::features(family, call, ctx, spec, before.time, out));
        }
        let over = |measured: f64, before: f64| (measured / before.max(1e-3)).ln();
        let pairs = rows.iter().zip(&before);
        let logs =
            pairs.map(|(row, before)| over(row.of.time.as_micros(), before.time.as_micros())).collect();
        StageResiduals { table, logs }
    }

    /// Learns trees that correct the residuals of some rows.
    fn learn(&self, rows: &[usize], weights: &[f64], boosting: &BoostOptions) -> Result<Trees, LearnError> {
        let target: Vec<f64> = rows.iter().map(|&row| self.logs[row]).collect();
        let weights: Vec<f64> = rows.iter().map(|&row| weights[row]).collect();
        boost(&self.table.select(rows), &target, &weights, boosting)
    }

    /// Returns the best share of the held-out corrections for the rows of a kind.
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

/// Usual range of the profiles' addition for being inside a step, to logarithms of times.
fn by_step(rows: &[Row<'_>]) -> [f64; 2] {
    let price = |setting| priced(rows, move |ctx| Context { setting, ..ctx.clone() });
    let added: Vec<f64> = price(Setting::Step)
        .iter()
        .zip(price(Setting::After))
        .map(|(inside, alone)| (inside.time.as_micros().max(1e-3) / alone.time.as_micros().max(1e-3)).ln())
        .collect();
    [quantile(&added, 0.1), quantile(&added, 0.9)].map(|end| if end.is_finite() { end } else { 0.0 })
}

/// Returns the rows of all kinds with enough of them, from enough cases, and the rows of each kind. Rows of other kinds
/// are not learnt from either.
fn judged<'o>(
    rows: &[Row<'o>],
    held_out: HeldOutPart,
    kind: impl Fn(&Row<'o>) -> String,
) -> (Vec<Row<'o>>, BTreeMap<String, Vec<usize>>) {
    let kinds = kinds(rows, held_out, kind);
    let judged: BTreeSet<usize> = kinds.values().flatten().copied().collect();
    let place: BTreeMap<usize, usize> = judged.iter().enumerate().map(|(new, &old)| (old, new)).collect();
    let rows = judged.iter().map(|&at| rows[at]).collect();
    let kinds =
        kinds.into_iter().map(|(name, at)| (name, at.iter().map(|old| place[old]).collect())).collect();
    (rows, kinds)
}

/// Returns the rows of each kind that has enough of them, from enough cases or GPUs.
fn kinds<'o>(
    rows: &[Row<'o>],
    held_out: HeldOutPart,
    kind: impl Fn(&Row<'o>) -> String,
) -> BTreeMap<String, Vec<usize>> {
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        kinds.entry(kind(row)).or_default().push(at);
    }
    let enough = |at: &[usize]| {
        let cases: BTreeSet<(u32, u32)> = at.iter().map(|&row| (rows[row].gpu, rows[row].of.case)).collect();
        let gpus: BTreeSet<u32> = at.iter().map(|&row| rows[row].gpu).collect();
        let known = held_out == HeldOutPart::Cases || gpus.len() >= GPUS_OF_A_KIND;
        at.len() >= ROWS_OF_A_KIND && cases.len() >= CASES_OF_A_KIND && known
    };
    kinds.retain(|_, rows| enough(rows));
    kinds
}

/// Mean error of residuals, relative to the measured time.
fn mean_error(residuals: impl Iterator<Item = f64>, count: usize) -> f64 {
    residuals.map(|residual| ((-residual).exp() - 1.0).abs()).sum::<f64>() / count.max(1) as f64
}

/// Fewer and smaller trees than a family's first ones: most of the structure is already fitted, and leaves of few rows are drawn to zero.
fn boosting(rows: usize, seed: u64) -> BoostOptions {
    let options = BoostOptions { seed, shrink: 3.0, rows: 4.0, ..BoostOptions::default() };
    match rows {
        0..400 => BoostOptions { trees: 120, depth: 4, leaves: 10, ..options },
        400..2000 => BoostOptions { trees: 200, depth: 6, leaves: 20, ..options },
        2000..10_000 => BoostOptions { trees: 300, leaves: 40, depth: 8, rounds: 6, ..options },
        10_000..40_000 => BoostOptions { trees: 320, leaves: 64, depth: 10, rounds: 8, ..options },
        _ => BoostOptions { trees: 600, leaves: 160, depth: 14, rounds: 3, shrink: 1.0, ..options },
    }
}

/// Options for GPUs that are not among the rows: small trees, for the behaviour that many GPUs have in common.
const FOR_OTHERS: BoostOptions = BoostOptions {
    trees: 200,
    rate: 0.06,
    depth: 6,
    leaves: 24,
    rows: 40.0,
    shrink: 10.0,
    columns: 0.6,
    sample: 0.7,
    rounds: 3,
    seed: 0,
};
