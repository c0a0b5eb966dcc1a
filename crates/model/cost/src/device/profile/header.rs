//! Readable part of a profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::HeaderError;
pub use super::format::{OLDEST, VERSION};
use crate::device::estimate::ModelKind;
use crate::device::learn::calibrate::Calibration;
use crate::device::learn::descent::Training;
use crate::device::learn::score::Score;
use crate::device::spec::DeviceSpec;

/// Content of `profile.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the file, [`VERSION`].
    pub version: u32,
    /// Short name of the profile, such as `h200`.
    pub name: String,
    /// Specification of the GPU.
    pub device: DeviceSpec,
    /// Errors of formulas with nothing fitted.
    pub unfitted: Spread,
    /// Metadata of the sweep: versions, dates, numbers of rows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, String>,
    /// Profile whose models these families correct, if they have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// Fitted families, by name.
    #[serde(default, rename = "family", skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyHeader>,
}

/// Half-widths of the 90 % interval of the logarithm of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Half-width of a call's own error.
    pub own: f64,
    /// Half-width of the error that all calls of a family share.
    pub shared: f64,
    /// Source of the values.
    pub source: String,
}

/// Fit of a family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyHeader {
    pub name: String,
    /// Number of fitted rows.
    pub rows: usize,
    /// Number of their cases.
    pub cases: usize,
    /// Model in use: the best on held-out rows.
    pub model: ModelKind,
    /// Number of trees that correct the formula.
    pub trees: usize,
    /// Network of the paper's model, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Training>,
    /// Scores on held-out rows.
    pub scores: BTreeMap<ModelKind, Score>,
    /// Scores of the model in use for variants: an op or pass, and the type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, Score>,
    /// Intervals on held-out rows.
    pub intervals: BTreeMap<ModelKind, IntervalScore>,
    /// Calibration factors of the formula.
    pub calibration: Calibration,
    /// Features of the trees, with their least and greatest value.
    pub features: Vec<(String, f32, f32)>,
    /// Corrections from later sweeps, in their order.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageHeader>,
}

/// Correction of a family from a later sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageHeader {
    /// Number of rows of the later sweep.
    pub rows: usize,
    /// Number of their cases.
    pub cases: usize,
    /// Number of trees that correct the earlier estimate.
    pub trees: usize,
    /// Whether kernels inside recorded steps were among the rows.
    pub in_steps: bool,
    /// Score of the earlier estimate on these rows.
    pub before: Score,
    /// Score with the correction, on held-out cases.
    pub after: Score,
    /// Interval on held-out cases.
    pub interval: IntervalScore,
    /// Names of the features.
    pub features: Vec<String>,
    /// Kinds of calls that the stage corrects.
    pub kinds: BTreeMap<String, KindScore>,
}

/// Quality of a stage on one kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindScore {
    /// Number of rows.
    pub rows: usize,
    /// Share of the correction that is applied, 0 to 1.
    pub share: f32,
    /// Mean error of the earlier estimate.
    pub before: f64,
    /// Mean error with the correction, on held-out cases.
    pub after: f64,
}

/// Quality of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntervalScore {
    /// Share of held-out rows inside the 90 % interval.
    pub inside: f64,
    /// Median half-width of the interval, of the logarithm of time.
    pub half_width: f64,
    /// Part of the half-width that a family has in common.
    pub shared: f64,
}

impl Header {
    /// Makes the header of a profile with a specification alone.
    #[must_use]
    pub fn from_spec(name: &str, device: DeviceSpec, unfitted: Spread) -> Header {
        let name = name.to_owned();
        Header {
            version: VERSION,
            name,
            device,
            unfitted,
            sweep: BTreeMap::new(),
            onto: None,
            families: Vec::new(),
        }
    }

    /// Reads the text of a `profile.toml`.
    ///
    /// # Errors
    ///
    /// The defect and the remedy: another version, a field that is missing, unknown or impossible.
    pub fn parse(text: &str) -> Result<Header, HeaderError> {
        let header = toml::from_str::<Header>(text).map_err(|error| refusal(text, error))?;
        if !(OLDEST..=VERSION).contains(&header.version) {
            return Err(HeaderError::Version(header.version.into()));
        }
        header.device.check()?;
        for (field, value) in [("own", header.unfitted.own), ("shared", header.unfitted.shared)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(HeaderError::Spread { field, value });
            }
        }
        Ok(header)
    }

    /// Returns the text of a `profile.toml`.
    ///
    /// # Errors
    ///
    /// A value that cannot be written as TOML.
    pub fn text(&self) -> Result<String, HeaderError> {
        toml::to_string(self).map_err(|error| HeaderError::Unwritable(Box::new(error)))
    }
}

/// Returns the error of a text that is not a header. The version goes first: a file of another one may well have other fields.
fn refusal(text: &str, error: toml::de::Error) -> HeaderError {
    match version(text) {
        Some(Some(version)) if !(i64::from(OLDEST)..=i64::from(VERSION)).contains(&version) => {
            HeaderError::Version(version)
        }
        Some(None) => HeaderError::NoVersion,
        _ => HeaderError::Toml(Box::new(error)),
    }
}

/// Returns the version that a text names; `None` if it is not TOML.
fn version(text: &str) -> Option<Option<i64>> {
    let table = toml::from_str::<toml::Table>(text).ok()?;
    Some(table.get("version").and_then(toml::Value::as_integer))
}
