//! Device profiles, listed and shown.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_cost::device::families::named;
use steptime_cost::device::paper::PaperModel;
use steptime_cost::device::profile::header::FamilyHeader;
use steptime_cost::device::{DeviceProfile, DeviceSpec};

use steptime_predict::pricing::tables::TableScore;

/// A profile in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceEntry {
    /// Name to select it by.
    pub name: String,
    /// The device's own name.
    pub device: String,
    /// Its architecture.
    pub architecture: String,
    /// Memory, GB of 10⁹ bytes.
    pub memory_gb: f64,
    /// Memory bandwidth, GB/s.
    pub memory_gb_s: f64,
    /// Peak of matrix products in fp32, TFLOP/s.
    pub f32_tflop_s: f64,
    /// Peak of matrix products in bf16, TFLOP/s.
    pub bf16_tflop_s: f64,
    /// Number of families measured on it; zero where the profile is only a specification.
    pub families: usize,
    /// Name of the profile whose models are transferred to it.
    pub models_of: Option<String>,
}

/// Full contents of a profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceProfileReport {
    /// Name to select it by.
    pub name: String,
    /// Its specification.
    pub device: DeviceSpec,
    /// Place and date of its measurement.
    pub sweep: BTreeMap<String, String>,
    /// Half-width of the 90 % interval where nothing was fitted, of the logarithm of time.
    pub unfitted: f64,
    /// Fitted families.
    pub families: Vec<FamilyEntry>,
    /// Name of the profile whose models are transferred to it.
    pub models_of: Option<String>,
    /// Widening of the intervals of transferred models, of the logarithm of time.
    pub wider: Option<f64>,
    /// Corrections of transferred models, by kind.
    pub corrected: Vec<CorrectionEntry>,
}

/// Correction of estimates for one kind of calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorrectionEntry {
    /// The family.
    pub family: String,
    /// The kind.
    pub kind: String,
    /// Source: `other GPUs`, each held out in turn, or `this GPU`, from some of its own cases.
    pub by: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// Mean error before.
    pub before: f64,
    /// Mean error after, on held-out rows.
    pub after: f64,
    /// Share of the correction that is applied, 0 to 1.
    pub taken: f64,
}

impl CorrectionEntry {
    /// Lists the corrections made by the stages of families.
    pub fn all(families: &[FamilyHeader], by: &'static str) -> impl Iterator<Item = CorrectionEntry> {
        families.iter().flat_map(move |family| {
            let kinds = family.stages.iter().flat_map(|stage| &stage.kinds);
            kinds.map(move |(kind, score)| CorrectionEntry {
                family: family.name.clone(),
                kind: kind.clone(),
                by,
                rows: score.rows,
                before: score.before,
                after: score.after,
                taken: f64::from(score.share),
            })
        })
    }
}

/// Families measured on the profile's own GPU.
fn measured(profile: &DeviceProfile) -> &[FamilyHeader] {
    match &profile.transferred {
        Some(lent) => &lent.layer.families,
        None => profile.families(),
    }
}

/// Fitted models of a family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyEntry {
    /// The family.
    pub family: String,
    /// Rows of the sweep.
    pub rows: usize,
    /// Number of cases, each on one side of every train/test split.
    pub cases: usize,
    /// The model in use.
    pub model: &'static str,
    /// Geometric mean of absolute relative errors, on held-out rows.
    pub gmae: f64,
    /// Mean absolute relative error.
    pub mean: f64,
    /// 90th percentile of absolute relative errors.
    pub p90: f64,
    /// Share of held-out rows inside the 90 % interval.
    pub inside: f64,
    /// Median half-width of the 90 % interval.
    pub half_width: f64,
    /// Kind of its `paper` model: the published formula, or its substitute.
    pub paper: &'static str,
    /// GMAE and mean of every model, on held-out rows.
    pub scores: BTreeMap<&'static str, [f64; 2]>,
    /// GMAE and mean of the model in use for each variant: an op or pass, and the data type.
    pub variants: BTreeMap<String, [f64; 2]>,
    /// Range of each feature in the fitted data.
    pub range: BTreeMap<String, [f32; 2]>,
}

/// Errors of predictions for a table's rows, of one GPU and one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableScoreEntry {
    /// The GPU, as the table names it.
    pub device: String,
    /// The kind.
    pub kind: String,
    /// Number of rows.
    pub rows: usize,
    /// Geometric mean of absolute relative errors.
    pub gmae: f64,
    /// Mean absolute relative error.
    pub mean: f64,
    /// 90th percentile of absolute relative errors.
    pub p90: f64,
    /// Sum of predicted times over the sum of measured times.
    pub total: f64,
    /// Share of rows inside the 90 % interval.
    pub inside: f64,
    /// Median half-width of the 90 % interval, of the logarithm of time.
    pub half_width: f64,
    /// Mean error of the roofline.
    pub roofline: f64,
}

impl TableScoreEntry {
    /// Makes a row from a score.
    #[must_use]
    pub fn new(score: &TableScore) -> TableScoreEntry {
        TableScoreEntry {
            device: score.device.clone(),
            kind: score.group.clone(),
            rows: score.rows,
            gmae: score.score.gmae,
            mean: score.score.mean,
            p90: score.score.p90,
            total: score.total,
            inside: score.inside,
            half_width: score.half_width,
            roofline: score.roofline,
        }
    }
}

impl DeviceEntry {
    /// Lists a profile. `lender` is the profile whose models are transferred to it where it has none of its own.
    #[must_use]
    pub fn new(name: &str, profile: &DeviceProfile, lender: &str) -> DeviceEntry {
        let spec = &profile.spec;
        DeviceEntry {
            name: name.to_owned(),
            device: spec.name.clone(),
            architecture: spec.architecture.clone(),
            memory_gb: spec.memory.bytes as f64 / 1e9,
            memory_gb_s: spec.memory.rate_gb_s,
            f32_tflop_s: spec.peak.f32_tflop_s,
            bf16_tflop_s: spec.peak.bf16_tflop_s,
            families: measured(profile).len(),
            models_of: models_of(profile)
                .or_else(|| profile.families().is_empty().then(|| lender.to_owned())),
        }
    }
}

impl DeviceProfileReport {
    /// Describes a profile.
    #[must_use]
    pub fn new(profile: &DeviceProfile) -> DeviceProfileReport {
        let family = |family: &FamilyHeader| {
            let score = family.scores.get(&family.model);
            let interval = family.intervals.get(&family.model);
            FamilyEntry {
                family: family.name.clone(),
                rows: family.rows,
                cases: family.cases,
                model: family.model.name(),
                gmae: score.map_or(f64::NAN, |score| score.gmae),
                mean: score.map_or(f64::NAN, |score| score.mean),
                p90: score.map_or(f64::NAN, |score| score.p90),
                inside: interval.map_or(f64::NAN, |interval| interval.inside),
                half_width: interval.map_or(f64::NAN, |interval| interval.half_width),
                paper: published(&family.name).name(),
                scores: family.scores.iter().map(|(kind, s)| (kind.name(), [s.gmae, s.mean])).collect(),
                variants: family.variants.iter().map(|(name, s)| (name.clone(), [s.gmae, s.mean])).collect(),
                range: family
                    .features
                    .iter()
                    .map(|(name, low, high)| (name.clone(), [*low, *high]))
                    .collect(),
            }
        };
        DeviceProfileReport {
            name: profile.name.clone(),
            device: profile.spec.clone(),
            sweep: profile.sweep.clone(),
            unfitted: profile.unfitted.own.hypot(profile.unfitted.shared),
            families: if models_of(profile).is_some() {
                Vec::new()
            } else {
                profile.families().iter().map(family).collect()
            },
            models_of: models_of(profile),
            wider: profile.transferred.as_ref().map(|lent| lent.wider.own.hypot(lent.wider.shared)),
            corrected: corrected(profile),
        }
    }
}

/// Name of the profile whose models are transferred to this one, or corrected by its stages.
fn models_of(profile: &DeviceProfile) -> Option<String> {
    profile.transferred.as_ref().map(|lent| lent.from.clone()).or_else(|| profile.onto.clone())
}

/// Corrections of transferred models: from other GPUs, then from this one.
fn corrected(profile: &DeviceProfile) -> Vec<CorrectionEntry> {
    let Some(lent) = &profile.transferred else {
        let own = if profile.onto.is_some() { profile.families() } else { &[] };
        return CorrectionEntry::all(own, "this GPU").collect();
    };
    CorrectionEntry::all(&lent.corrections.families, "other GPUs")
        .chain(CorrectionEntry::all(measured(profile), "this GPU"))
        .collect()
}

/// Source of the `paper` model of a family.
fn published(family: &str) -> PaperModel {
    named(family).map_or(PaperModel::None, |family| family.published())
}
