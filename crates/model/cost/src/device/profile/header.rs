//! The readable part of a profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::HeaderError;
pub use super::format::{OLDEST, VERSION};
use crate::device::estimate::ModelKind;
use crate::device::learn::calibrate::Calibration;
use crate::device::learn::descent::Training;
use crate::device::learn::score::Score;
use crate::device::spec::DeviceSpec;

/// What `profile.toml` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`VERSION`].
    pub version: u32,
    /// The profile's short name, `h200`.
    pub name: String,
    /// The GPU.
    pub device: DeviceSpec,
    /// How far formulas are off where nothing was fitted.
    pub unfitted: Spread,
    /// What was measured: versions, dates, numbers of rows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, String>,
    /// Whose models these families correct, where they have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// The families fitted, by name.
    #[serde(default, rename = "family", skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<FamilyHeader>,
}

/// Half-widths of the 90 % interval of the logarithm of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// A call's own.
    pub own: f64,
    /// Common to all calls of a family.
    pub shared: f64,
    /// Where they are from.
    pub source: String,
}

/// What was fitted for a family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyHeader {
    /// Its name.
    pub name: String,
    /// Rows fitted on.
    pub rows: usize,
    /// Cases they are from.
    pub cases: usize,
    /// The model in use: the best on held-out rows.
    pub model: ModelKind,
    /// How many trees correct the formula.
    pub trees: usize,
    /// The network of the paper's model, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Training>,
    /// Scores on held-out rows.
    pub scores: BTreeMap<ModelKind, Score>,
    /// Scores of the model in use for variants: an op or pass, and the type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, Score>,
    /// Intervals on held-out rows.
    pub intervals: BTreeMap<ModelKind, IntervalScore>,
    /// Factors of the formula.
    pub calibration: Calibration,
    /// The features of the trees, with their least and greatest value.
    pub features: Vec<(String, f32, f32)>,
    /// What later sweeps have taught on top, in their order.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageHeader>,
}

/// What was learnt of a family from a later sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageHeader {
    /// Rows of the later sweep.
    pub rows: usize,
    /// Cases they are from.
    pub cases: usize,
    /// Trees that correct the estimate before.
    pub trees: usize,
    /// Whether kernels inside recorded steps were among the rows.
    pub in_steps: bool,
    /// The estimate before, on these rows.
    pub before: Score,
    /// With the correction, on held-out cases.
    pub after: Score,
    /// The interval on held-out cases.
    pub interval: IntervalScore,
    /// The names of the features.
    pub features: Vec<String>,
    /// The kinds of calls that it speaks of.
    pub kinds: BTreeMap<String, KindScore>,
}

/// How a stage does on one kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindScore {
    /// Rows.
    pub rows: usize,
    /// How much of the correction is taken, 0 to 1.
    pub share: f32,
    /// Mean error of the estimate before.
    pub before: f64,
    /// Mean error with the correction, on held-out cases.
    pub after: f64,
}

/// How good an interval is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntervalScore {
    /// Share of held-out rows inside the 90 % interval.
    pub inside: f64,
    /// Its median half-width, of the logarithm of time.
    pub half_width: f64,
    /// The part of it that a family has in common.
    pub shared: f64,
}

impl Header {
    /// A profile of nothing but a specification.
    #[must_use]
    pub fn of_spec(name: &str, device: DeviceSpec, unfitted: Spread) -> Header {
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
    /// What is wrong, and the remedy: another version, a field that is missing, not known or cannot be.
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

    /// The text of a `profile.toml`.
    ///
    /// # Errors
    ///
    /// What cannot be written as TOML.
    pub fn text(&self) -> Result<String, HeaderError> {
        toml::to_string(self).map_err(|error| HeaderError::Unwritable(Box::new(error)))
    }
}

/// Why a text is not a header. The version goes first: a file of another one may well have other fields.
fn refusal(text: &str, error: toml::de::Error) -> HeaderError {
    match version(text) {
        Some(Some(version)) if !(i64::from(OLDEST)..=i64::from(VERSION)).contains(&version) => {
            HeaderError::Version(version)
        }
        Some(None) => HeaderError::NoVersion,
        _ => HeaderError::Toml(Box::new(error)),
    }
}

/// The version that a text names; `None` where it is no TOML.
fn version(text: &str) -> Option<Option<i64>> {
    let table = toml::from_str::<toml::Table>(text).ok()?;
    Some(table.get("version").and_then(toml::Value::as_integer))
}
