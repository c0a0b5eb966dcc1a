//! Fits one family.

use std::collections::{BTreeMap, BTreeSet};

use super::FitOptions;
use super::network::{self, NetworkFit};
use super::signature::groups;
use crate::device::estimate::ModelKind;
use crate::device::families;
use crate::device::learn::boost::{BoostOptions, boost};
use crate::device::learn::calibrate::Calibration;
use crate::device::learn::conformal::{Detail, Interval};
use crate::device::learn::cross_validation::Folds;
use crate::device::learn::error::LearnError;
use crate::device::learn::score::Score;
use crate::device::learn::sizes::{SIZES, sizes};
use crate::device::learn::table::Table;
use crate::device::learn::trees::Trees;
use crate::device::observation::Observation;
use crate::device::profile::FamilyModels;
use crate::device::profile::header::{FamilyHeader, IntervalScore};
use crate::device::spec::DeviceSpec;
use crate::device::variant::variant;

/// Least number of rows for trees.
const ROWS_FOR_TREES: usize = 60;

/// Fit of a family.
pub struct FamilyFit {
    pub header: FamilyHeader,
    pub models: FamilyModels,
    /// Logarithms of measured over formula, nothing fitted.
    pub formula: Vec<f64>,
}

/// Number of rows above which one fold is held out instead of each in turn: it has enough rows.
const ROWS_FOR_ONE_FOLD: usize = 100_000;

/// Least number of rows for a variant's own score.
const ROWS_FOR_A_SCORE: usize = 200;

/// Rows of a family, times as logarithms of microseconds.
struct Rows {
    table: Table,
    sizes: Vec<Option<[f32; SIZES]>>,
    variants: Vec<String>,
    measured: Vec<f64>,
    formula: Vec<f64>,
    paper: Vec<Option<f64>>,
    groups: Vec<u32>,
    folds: Folds,
}

impl Rows {
    fn new(observations: &[&Observation], spec: &DeviceSpec, options: &FitOptions) -> Rows {
        let groups = groups(observations);
        let columns =
            observations.first().map_or(0, |row| families::find(&row.call.kernel).feature_names().len());
        let folds = Folds::new(&groups, options.folds, options.seed);
        let folds = if groups.len() > ROWS_FOR_ONE_FOLD { folds.holding(1) } else { folds };
        let mut rows = Rows {
            table: Table::new(columns),
            sizes: Vec::new(),
            variants: Vec::new(),
            measured: Vec::new(),
            formula: Vec::new(),
            paper: Vec::new(),
            groups,
            folds,
        };
        for Observation { call, ctx, time, .. } in observations {
            let family = families::find(&call.kernel);
            rows.table.push(|out| family.features(call, ctx, spec, out));
            rows.sizes.push(sizes(call));
            rows.variants.push(variant(call));
            rows.measured.push(time.as_micros().ln());
            rows.formula.push(family.analytic(call, ctx, spec).ln());
            rows.paper.push(family.paper(call, ctx, spec).map(f64::ln));
        }
        rows
    }

    fn len(&self) -> usize {
        self.measured.len()
    }

    fn calibrate(&self, rows: &[usize]) -> Calibration {
        let residuals =
            rows.iter().map(|&row| (self.variants[row].as_str(), self.measured[row] - self.formula[row]));
        Calibration::fit(residuals)
    }

    fn calibrated(&self, calibration: &Calibration, row: usize) -> f64 {
        self.formula[row] + calibration.offset(&self.variants[row])
    }

    /// Grows trees on the residuals of the calibrated formula.
    fn grow(
        &self,
        rows: &[usize],
        calibration: &Calibration,
        options: &BoostOptions,
    ) -> Result<Trees, LearnError> {
        let left: Vec<f64> =
            rows.iter().map(|&row| self.measured[row] - self.calibrated(calibration, row)).collect();
        boost(&self.table.select(rows), &left, &vec![1.0; rows.len()], options)
    }

    /// Returns the scores of variants with enough rows.
    fn by_variant(&self, predicted: &[f64]) -> BTreeMap<String, Score> {
        let mut residuals: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for ((variant, measured), predicted) in self.variants.iter().zip(&self.measured).zip(predicted) {
            let residual = measured - predicted;
            if residual.is_finite() {
                residuals.entry(variant).or_default().push(residual);
            }
        }
        let enough = residuals.into_iter().filter(|(_, residuals)| residuals.len() >= ROWS_FOR_A_SCORE);
        enough.filter_map(|(variant, all)| Some((variant.to_owned(), Score::from_residuals(&all)?))).collect()
    }

    /// Returns held-out predictions of the calibrated formula, and with trees.
    fn held_out(&self, kind: ModelKind, options: &BoostOptions) -> Result<Vec<f64>, LearnError> {
        self.folds.out_of_fold(|learn, held_out| {
            let calibration = self.calibrate(learn);
            let mut predicted: Vec<f64> =
                held_out.iter().map(|&row| self.calibrated(&calibration, row)).collect();
            if kind == ModelKind::Learnt {
                let trees = self.grow(learn, &calibration, options)?;
                let corrections = trees.predict(&self.table.select(held_out));
                predicted.iter_mut().zip(corrections).for_each(|(p, correction)| *p += f64::from(correction));
            }
            Ok(predicted)
        })
    }
}

/// Fits all models of a family, scores them on held-out rows, and picks the best.
pub fn fit(
    observations: &[&Observation],
    spec: &DeviceSpec,
    options: &FitOptions,
) -> Result<FamilyFit, LearnError> {
    let first = observations.first().ok_or(LearnError::NoRows)?;
    let family = families::find(&first.call.kernel);
    let rows = Rows::new(observations, spec, options);
    let Candidates { calibration, trees, network, held_out } = Candidates::fit(&rows, options)?;
    let HeldOutQuality { best, scores, intervals } = HeldOutQuality::measure(&rows, &held_out, options)?;
    let variants = held_out.get(&best).map_or_else(BTreeMap::new, |predicted| rows.by_variant(predicted));
    let mut told = BTreeMap::new();
    let mut models = FamilyModels { trees, ..FamilyModels::default() };
    for (kind, interval) in intervals {
        let Interval { inside, half_width, shared, .. } = interval;
        told.insert(kind, IntervalScore { inside, half_width, shared });
        models.intervals[kind as usize] = Some(interval);
    }
    let training = network.as_ref().map(|fit| fit.training);
    models.network = network.map(|fit| fit.network);
    let names = family.feature_names().iter().zip(rows.table.ranges());
    let header = FamilyHeader {
        name: family.name().to_owned(),
        rows: rows.len(),
        cases: observations.iter().map(|row| row.case).collect::<BTreeSet<u32>>().len(),
        model: best,
        trees: models.trees.as_ref().map_or(0, Trees::len),
        network: training,
        scores,
        variants,
        intervals: told,
        calibration,
        features: names.map(|(name, [low, high])| ((*name).to_owned(), low, high)).collect(),
        stages: Vec::new(),
    };
    let formula = rows.measured.iter().zip(&rows.formula).map(|(m, f)| m - f).collect();
    Ok(FamilyFit { header, models, formula })
}

/// Models of a family, fitted on all rows, and their predictions of held-out rows.
struct Candidates {
    calibration: Calibration,
    trees: Option<Trees>,
    network: Option<NetworkFit>,
    held_out: BTreeMap<ModelKind, Vec<f64>>,
}

impl Candidates {
    fn fit(rows: &Rows, options: &FitOptions) -> Result<Candidates, LearnError> {
        let all: Vec<usize> = (0..rows.len()).collect();
        let boosting = boosting(rows.len(), options.seed);
        let grows = rows.len() >= ROWS_FOR_TREES && rows.folds.count() > 2;
        let calibration = rows.calibrate(&all);
        let mut held_out = BTreeMap::new();
        held_out.insert(ModelKind::Analytic, rows.held_out(ModelKind::Analytic, &boosting)?);
        let mut trees = None;
        if grows {
            let (learnt, grown) = rayon::join(
                || rows.held_out(ModelKind::Learnt, &boosting),
                || rows.grow(&all, &calibration, &boosting),
            );
            held_out.insert(ModelKind::Learnt, learnt?);
            trees = Some(grown?);
        }
        // A network only if there is no formula.
        let without: Vec<Option<[f32; SIZES]>> = rows
            .sizes
            .iter()
            .zip(&rows.paper)
            .map(|(sizes, paper)| sizes.filter(|_| paper.is_none()))
            .collect();
        let network = network::fit(&without, &rows.measured, &rows.folds, options.search, options.seed)?;
        let mut paper: Vec<f64> = rows.paper.iter().map(|paper| paper.unwrap_or(f64::NAN)).collect();
        if let Some(NetworkFit { rows: of, held_out, .. }) = &network {
            of.iter().zip(held_out).for_each(|(&row, &value)| paper[row] = value);
        }
        if paper.iter().any(|value| value.is_finite()) {
            held_out.insert(ModelKind::Paper, paper);
        }
        Ok(Candidates { calibration, trees, network, held_out })
    }
}

/// Quality of models on held-out rows.
struct HeldOutQuality {
    /// Kind with the least mean error, among those that cover every row.
    best: ModelKind,
    scores: BTreeMap<ModelKind, Score>,
    intervals: BTreeMap<ModelKind, Interval>,
}

impl HeldOutQuality {
    fn measure(
        rows: &Rows,
        held_out: &BTreeMap<ModelKind, Vec<f64>>,
        options: &FitOptions,
    ) -> Result<HeldOutQuality, LearnError> {
        let held = rows.folds.held_out();
        let unseen = rows.table.select(&held);
        let groups: Vec<&str> = held.iter().map(|&row| rows.variants[row].as_str()).collect();
        let unseen_groups: Vec<u32> = held.iter().map(|&row| rows.groups[row]).collect();
        let folds = Folds::new(&unseen_groups, options.folds, options.seed);
        let residuals: BTreeMap<ModelKind, Vec<f64>> = held_out
            .iter()
            .map(|(&kind, predicted)| {
                (kind, held.iter().map(|&row| rows.measured[row] - predicted[row]).collect())
            })
            .collect();
        let scores: BTreeMap<ModelKind, Score> = residuals
            .iter()
            .filter_map(|(&kind, residuals)| Some((kind, Score::from_residuals(residuals)?)))
            .collect();
        let complete = scores.iter().filter(|(_, score)| score.rows == held.len());
        let best = complete
            .min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
            .map_or(ModelKind::Analytic, |(&kind, _)| kind);
        let mut intervals = BTreeMap::new();
        for &kind in scores.keys() {
            let detail = if kind == best { Detail::Fine } else { Detail::Coarse };
            intervals.insert(kind, Interval::fit(&unseen, &residuals[&kind], &folds, &groups, detail)?);
        }
        Ok(HeldOutQuality { best, scores, intervals })
    }
}

/// Returns the options of boosting. Few rows grow few and small trees, by squared error: they need all they have. Many rows grow large ones by
/// absolute error, so that the few rows with an unusual library kernel do not bend the rest.
fn boosting(rows: usize, seed: u64) -> BoostOptions {
    let options = BoostOptions { seed, ..BoostOptions::default() };
    match rows {
        0..400 => BoostOptions { trees: 150, depth: 4, leaves: 10, ..options },
        400..2000 => BoostOptions { trees: 250, depth: 6, leaves: 24, ..options },
        2000..10_000 => BoostOptions { leaves: 48, depth: 8, rounds: 8, ..options },
        10_000..20_000 => BoostOptions { rounds: 8, ..options },
        20_000..80_000 => BoostOptions { rounds: 8, leaves: 120, depth: 10, ..options },
        80_000..200_000 => {
            BoostOptions { trees: 350, rate: 0.15, leaves: 220, depth: 12, rounds: 10, ..options }
        }
        _ => BoostOptions { trees: 350, rate: 0.15, leaves: 700, depth: 14, rounds: 10, ..options },
    }
}
