//! `checkpoint.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use steptime_tensor::DType;

use super::{CheckpointError, Digest};
use crate::schedule::Schedule;

/// Name of the description in a checkpoint's folder.
pub(super) const FILE: &str = "checkpoint.toml";
/// Version of the format that is written, and the latest that is read.
const VERSION: u32 = 1;
/// Begin of the last line, before the hash of all lines above it.
const HASH: &str = "# hash of the lines above: ";

/// State of a training run, apart from its tensors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of steps that have been made.
    pub step: u64,
    /// Number of whole passes over the data.
    pub epoch: u64,
    /// Seed of the run.
    #[serde(with = "decimal")]
    pub seed: u64,
    /// Position in the data, as its reader writes it.
    pub data_position: String,
    /// Further state by name, as its owners write it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, String>,
    /// Schedule of the learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// The described model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Hash of the text.
    pub hash: Digest,
    /// The text of `model.toml`.
    pub text: String,
}

/// A safetensors file of the checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Name in the folder.
    pub file: String,
    /// Length.
    pub bytes: u64,
    /// Hash of the whole file.
    pub hash: Digest,
}

/// A tensor of the checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// Element type.
    #[serde(with = "dtype")]
    pub dtype: DType,
    /// Sizes of the dimensions, rows first.
    pub shape: Vec<u64>,
    /// Parts, in order of the rows.
    pub pieces: Vec<Piece>,
}

/// Consecutive rows of a tensor in one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Index of the shard.
    pub shard: u32,
    /// Number of rows; 1 for a tensor without dimensions.
    pub rows: u64,
}

/// All of `checkpoint.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub version: u32,
    pub state: State,
    pub model: Model,
    #[serde(default)]
    pub shards: Vec<Shard>,
    #[serde(default)]
    pub tensors: Vec<Tensor>,
}

impl Manifest {
    pub fn new(state: State, model: &str, shards: Vec<Shard>, tensors: Vec<Tensor>) -> Self {
        let model = Model { hash: Digest::new(model.as_bytes()), text: model.to_owned() };
        Manifest { version: VERSION, state, model, shards, tensors }
    }

    /// The file's text.
    pub fn to_text(&self, path: &Path) -> Result<String, CheckpointError> {
        let invalid = |error| CheckpointError::Manifest { path: path.into(), reason: format!("{error}") };
        let mut text: String = toml::to_string(self).map_err(invalid)?;
        let hash = Digest::new(text.as_bytes());
        text += &format!("{HASH}{hash}\n");
        Ok(text)
    }

    /// Reads and checks the file's text.
    pub fn from_text(path: &Path, text: &str) -> Result<Self, CheckpointError> {
        let invalid = |reason| CheckpointError::Manifest { path: path.into(), reason };
        let end =
            text.rfind(HASH).ok_or_else(|| invalid("the hash in its last line is missing".to_owned()))?;
        let (lines, last) = text.split_at(end);
        let hash: Digest = last[HASH.len()..].trim_end().parse().map_err(invalid)?;
        if hash != Digest::new(lines.as_bytes()) {
            return Err(invalid("its lines do not have the hash in the last one".to_owned()));
        }
        // The version first: a later format may have other fields.
        let value: toml::Table = lines.parse().map_err(|error| invalid(format!("{error}")))?;
        match value.get("version").and_then(toml::Value::as_integer).map(u32::try_from) {
            Some(Ok(version)) if version > VERSION => {
                return Err(CheckpointError::Version { path: path.into(), version, known: VERSION });
            }
            Some(Ok(_)) => {}
            _ => return Err(invalid("its version is missing".to_owned())),
        }
        let manifest: Manifest = toml::from_str(lines).map_err(|error| invalid(format!("{error}")))?;
        if manifest.model.hash != Digest::new(manifest.model.text.as_bytes()) {
            return Err(invalid("the model's text does not have its hash".to_owned()));
        }
        Ok(manifest)
    }
}

impl Tensor {
    /// Number of rows; 1 without dimensions.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Bytes of one row; `None` if they exceed 64 bits.
    #[must_use]
    pub fn row_bytes(&self) -> Option<u64> {
        let sizes = self.shape.iter().skip(1);
        sizes.copied().try_fold(self.dtype.bytes() as u64, u64::checked_mul)
    }

    /// Bytes of all rows; `None` if they exceed 64 bits.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.row_bytes()?.checked_mul(self.rows())
    }
}

/// TOML's integers end at 2^63 - 1: a seed is written in quotes.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

mod dtype {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use steptime_tensor::DType;

    const ALL: [DType; 6] = [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::I64, DType::U8];

    pub fn serialize<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(dtype)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        let text = String::deserialize(deserializer)?;
        let dtype = ALL.into_iter().find(|dtype| dtype.to_string() == text);
        dtype.ok_or_else(|| de::Error::custom(format!("unknown element type {text:?}")))
    }
}
