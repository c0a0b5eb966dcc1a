//! Device profiles, listed and shown.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime_cost::device::families::named;
use steptime_cost::device::paper::Published;
use steptime_cost::device::profile::header::FamilyHeader;
use steptime_cost::device::{DeviceProfile, DeviceSpec};

use crate::device::tables::TableScore;

/// A profile in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceListed {
    /// The name to ask for it by.
    pub name: String,
    /// What the device calls itself.
    pub device: String,
    /// Its architecture.
    pub architecture: String,
    /// Its memory, GB of 10⁹ bytes.
    pub memory_gb: f64,
    /// What its memory reaches, GB/s.
    pub memory_gb_s: f64,
    /// What matrix products in fp32 reach, TFLOP/s.
    pub f32_tflop_s: f64,
    /// What they reach in bf16, TFLOP/s.
    pub bf16_tflop_s: f64,
    /// Families that were measured on it; none where the profile is a specification.
    pub families: usize,
    /// The profile whose models it is lent.
    pub models_of: Option<String>,
}

/// All that a profile says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceShown {
    /// The name to ask for it by.
    pub name: String,
    /// Its specification.
    pub device: DeviceSpec,
    /// Where and when it was measured.
    pub sweep: BTreeMap<String, String>,
    /// Half-width of the 90 % interval where nothing was fitted, of the logarithm of time.
    pub unfitted: f64,
    /// What was fitted, family by family.
    pub families: Vec<FamilyShown>,
    /// The profile whose models it is lent.
    pub models_of: Option<String>,
    /// How much wider intervals of lent models are, of the logarithm of time.
    pub wider: Option<f64>,
    /// How lent models are corrected, kind by kind.
    pub corrected: Vec<CorrectedShown>,
}

/// How estimates of one kind of calls are corrected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorrectedShown {
    /// The family.
    pub family: String,
    /// The kind.
    pub kind: String,
    /// By what: `other GPUs`, each of which was held out in turn, or `this GPU`, of whose cases some were.
    pub by: &'static str,
    /// Rows.
    pub rows: usize,
    /// Mean error before.
    pub before: f64,
    /// Mean error after, on what was held out.
    pub after: f64,
    /// How much of the correction is taken, 0 to 1.
    pub taken: f64,
}

impl CorrectedShown {
    /// What the stages of families do.
    pub fn all(families: &[FamilyHeader], by: &'static str) -> impl Iterator<Item = CorrectedShown> {
        families.iter().flat_map(move |family| {
            let kinds = family.stages.iter().flat_map(|stage| &stage.kinds);
            kinds.map(move |(kind, score)| CorrectedShown {
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

/// The families that were measured on a profile's own GPU.
fn measured(profile: &DeviceProfile) -> &[FamilyHeader] {
    match &profile.lent {
        Some(lent) => &lent.layer.families,
        None => profile.families(),
    }
}

/// What was fitted for a family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyShown {
    /// The family.
    pub family: String,
    /// Rows of the sweep.
    pub rows: usize,
    /// Cases among them, each on one side of every test.
    pub cases: usize,
    /// The model in use.
    pub model: &'static str,
    /// Geometric mean of absolute relative errors, on held-out rows.
    pub gmae: f64,
    /// Their mean.
    pub mean: f64,
    /// Their ninetieth percentile.
    pub p90: f64,
    /// Share of held-out rows inside the 90 % interval.
    pub inside: f64,
    /// Its median half-width.
    pub half_width: f64,
    /// What its `paper` model is: the published formula, or what stands in for it.
    pub paper: &'static str,
    /// GMAE and mean of every model, on held-out rows.
    pub scores: BTreeMap<&'static str, [f64; 2]>,
    /// GMAE and mean of the model in use for each variant: an op or pass, and the type.
    pub variants: BTreeMap<String, [f64; 2]>,
    /// The range of each feature that was fitted on.
    pub range: BTreeMap<String, [f32; 2]>,
}

/// How far off predictions of a table's rows are, of one GPU and one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableScored {
    /// The GPU, as the table names it.
    pub device: String,
    /// The kind.
    pub kind: String,
    /// How many rows.
    pub rows: usize,
    /// Geometric mean of absolute relative errors.
    pub gmae: f64,
    /// Their mean.
    pub mean: f64,
    /// Their ninetieth percentile.
    pub p90: f64,
    /// What was predicted for all rows together, over what was measured.
    pub total: f64,
    /// Share of rows inside the 90 % interval.
    pub inside: f64,
    /// Its median half-width, of the logarithm of time.
    pub half_width: f64,
    /// The mean error of the roofline.
    pub roofline: f64,
}

impl TableScored {
    /// Of scored rows.
    #[must_use]
    pub fn new(score: &TableScore) -> TableScored {
        TableScored {
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

impl DeviceListed {
    /// Of a profile as it stands, and of the one whose models it is lent where it has none.
    #[must_use]
    pub fn new(name: &str, profile: &DeviceProfile, lender: &str) -> DeviceListed {
        let spec = &profile.spec;
        DeviceListed {
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

impl DeviceShown {
    /// Of a profile.
    #[must_use]
    pub fn new(profile: &DeviceProfile) -> DeviceShown {
        let family = |family: &FamilyHeader| {
            let score = family.scores.get(&family.model);
            let interval = family.intervals.get(&family.model);
            FamilyShown {
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
        DeviceShown {
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
            wider: profile.lent.as_ref().map(|lent| lent.wider.own.hypot(lent.wider.shared)),
            corrected: corrected(profile),
        }
    }
}

/// The profile whose models a profile is lent, or that its stages correct.
fn models_of(profile: &DeviceProfile) -> Option<String> {
    profile.lent.as_ref().map(|lent| lent.from.clone()).or_else(|| profile.onto.clone())
}

/// How lent models are corrected: by other GPUs, then by this one.
fn corrected(profile: &DeviceProfile) -> Vec<CorrectedShown> {
    let Some(lent) = &profile.lent else {
        let own = if profile.onto.is_some() { profile.families() } else { &[] };
        return CorrectedShown::all(own, "this GPU").collect();
    };
    CorrectedShown::all(&lent.corrections.families, "other GPUs")
        .chain(CorrectedShown::all(measured(profile), "this GPU"))
        .collect()
}

/// What the `paper` model of a family is.
fn published(family: &str) -> Published {
    named(family).map_or(Published::None, |family| family.published())
}
