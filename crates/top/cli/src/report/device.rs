//! Device profiles, listed and shown.

use std::collections::BTreeMap;

use serde::Serialize;
use steptime::cost::device::families::named;
use steptime::cost::device::paper::Published;
use steptime::cost::device::{DeviceProfile, DeviceSpec};

use super::format::{percent, wrapped};
use super::table::Columns;
use crate::output::name;

/// Characters of a line of words.
const WIDTH: usize = 100;

/// A profile in a list.
#[derive(Debug, Serialize)]
pub struct Listed {
    pub name: String,
    pub device: String,
    pub architecture: String,
    pub memory_gb: f64,
    pub memory_gb_s: f64,
    pub f32_tflop_s: f64,
    pub bf16_tflop_s: f64,
    /// Families with fitted models; none where the profile is a specification.
    pub families: usize,
}

/// All that a profile says.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub name: String,
    pub device: DeviceSpec,
    pub sweep: BTreeMap<String, String>,
    /// Half-width of the 90 % interval where nothing was fitted, of the logarithm of time.
    pub unfitted: f64,
    pub families: Vec<FamilyShown>,
}

/// What was fitted for a family.
#[derive(Debug, Serialize)]
pub struct FamilyShown {
    pub family: String,
    pub rows: usize,
    pub cases: usize,
    /// The model in use.
    pub model: &'static str,
    pub gmae: f64,
    pub mean: f64,
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

impl Listed {
    /// Of a profile.
    pub fn new(name: &str, profile: &DeviceProfile) -> Listed {
        let spec = &profile.spec;
        Listed {
            name: name.to_owned(),
            device: spec.name.clone(),
            architecture: spec.architecture.clone(),
            memory_gb: spec.memory.bytes as f64 / 1e9,
            memory_gb_s: spec.memory.rate_gb_s,
            f32_tflop_s: spec.peak.f32_tflop_s,
            bf16_tflop_s: spec.peak.bf16_tflop_s,
            families: profile.families().len(),
        }
    }
}

/// A list as a table.
pub fn listed(list: &[Listed]) -> String {
    let names = ["name", "device", "architecture", ">GB", ">GB/s", ">fp32", ">bf16", "kernels"];
    let mut columns = Columns::new(&names);
    for row in list {
        let kernels = match row.families {
            0 => "from the specification".to_owned(),
            count => format!("{count} fitted families"),
        };
        columns.row([
            row.name.clone(),
            row.device.clone(),
            row.architecture.clone(),
            format!("{:.0}", row.memory_gb),
            format!("{:.0}", row.memory_gb_s),
            format!("{:.1}", row.f32_tflop_s),
            format!("{:.1}", row.bf16_tflop_s),
            kernels,
        ]);
    }
    format!("rates are achieved ones; fp32 and bf16: matrix products, TFLOP/s\n\n{}", columns.text())
}

impl Shown {
    /// Of a profile.
    pub fn new(profile: &DeviceProfile) -> Shown {
        let family = |family: &steptime::cost::device::profile::header::FamilyHeader| {
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
        Shown {
            name: profile.name.clone(),
            device: profile.spec.clone(),
            sweep: profile.sweep.clone(),
            unfitted: profile.unfitted.own.hypot(profile.unfitted.shared),
            families: profile.families().iter().map(family).collect(),
        }
    }

    /// As text.
    pub fn text(&self) -> String {
        let spec = &self.device;
        let mut text = format!(
            "{}: {}, {} multiprocessors at {:.0} MHz ({})\n",
            name(&self.name),
            name(&spec.name),
            spec.multiprocessors,
            spec.clock_mhz,
            name(&spec.source)
        );
        text.push_str(&format!(
            "memory {:.0} GB at {:.0} GB/s ({}); L2 {:.0} MB, of which {:.0} MB hold data that comes back, at {:.0} GB/s\n",
            spec.memory.bytes as f64 / 1e9,
            spec.memory.rate_gb_s,
            spec.memory.source,
            spec.l2.bytes as f64 / 1e6,
            spec.l2.effective_bytes as f64 / 1e6,
            spec.l2.rate_gb_s,
        ));
        text.push_str(&format!(
            "matrix products, TFLOP/s: fp32 {:.1}, TF32 {:.0}, bf16 {:.0}, fp16 {:.0} ({})\n",
            spec.peak.f32_tflop_s,
            spec.peak.tf32_tflop_s,
            spec.peak.bf16_tflop_s,
            spec.peak.f16_tflop_s,
            spec.peak.source
        ));
        text.push_str(&format!("shortest kernel {:.2} us\n", spec.launch.floor_us));
        for (key, value) in &self.sweep {
            text.push_str(&format!("{key}: {value}\n"));
        }
        if self.families.is_empty() {
            text.push_str(&format!(
                "no kernels were fitted: times come from formulas over this specification, give or take {}\n",
                percent(self.unfitted.exp() - 1.0)
            ));
            return text;
        }
        let names = [
            "family",
            ">rows",
            "model",
            ">GMAE",
            ">mean",
            ">p90",
            ">inside",
            ">half-width",
            "other models: GMAE / mean",
        ];
        let mut columns = Columns::new(&names);
        for row in &self.families {
            let others = row.scores.iter().filter(|(name, _)| **name != row.model);
            let others =
                others.map(|(name, [gmae, mean])| format!("{name} {} / {}", percent(*gmae), percent(*mean)));
            columns.row([
                row.family.clone(),
                row.rows.to_string(),
                row.model.to_owned(),
                percent(row.gmae),
                percent(row.mean),
                percent(row.p90),
                percent(row.inside),
                percent(row.half_width),
                others.collect::<Vec<_>>().join(", "),
            ]);
        }
        text.push_str(&format!("\nerrors on rows held out of the fit\n{}", columns.text()));
        text.push_str(&format!("\n{}\n", self.papers()));
        text
    }

    /// What `paper` stands for, family by family.
    fn papers(&self) -> String {
        let mut names: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
        for row in self.families.iter().filter(|row| row.scores.contains_key("paper")) {
            names.entry(row.paper).or_default().push(&row.family);
        }
        let each: Vec<String> =
            names.iter().map(|(what, of)| format!("{what} ({})", of.join(", "))).collect();
        wrapped(&format!("paper is: {}", each.join("; ")), WIDTH, 2)
    }
}

/// What the `paper` model of a family is.
fn published(family: &str) -> Published {
    named(family).map_or(Published::None, |family| family.published())
}
