//! Types of stored numbers.

use serde::{Deserialize, Serialize};

/// Type of stored dense values. Batches have `f32` in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DenseType {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, IEEE half precision.
    F16,
}

impl DenseType {
    /// Bytes of a value.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            DenseType::F32 => 4,
            DenseType::F16 => 2,
        }
    }
}

/// Type of stored indices. Batches have `i32` in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexType {
    /// 8 bits without a sign.
    U8,
    /// 16 bits without a sign.
    U16,
    /// 32 bits.
    I32,
}

impl IndexType {
    /// The narrowest type for indices of `0..cardinality`.
    #[must_use]
    pub fn narrowest(cardinality: u32) -> IndexType {
        match cardinality {
            0..=0x100 => IndexType::U8,
            0x101..=0x1_0000 => IndexType::U16,
            _ => IndexType::I32,
        }
    }

    /// Bytes of an index.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            IndexType::U8 => 1,
            IndexType::U16 => 2,
            IndexType::I32 => 4,
        }
    }
}

/// Number of indices of a row in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Spelled", into = "Spelled")]
pub enum Hotness {
    /// The same number in each row, at least 1; in `features.toml` a number.
    Fixed(u32),
    /// Any number in each row, also none, with offsets; in `features.toml` the word `"offsets"`.
    Ragged,
}

/// Hotness as it is written in the description.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Spelled {
    Number(u32),
    Word(String),
}

impl TryFrom<Spelled> for Hotness {
    type Error = String;

    fn try_from(spelled: Spelled) -> Result<Hotness, String> {
        match spelled {
            Spelled::Number(hotness) if hotness > 0 => Ok(Hotness::Fixed(hotness)),
            Spelled::Word(word) if word == "offsets" => Ok(Hotness::Ragged),
            _ => Err("hotness is a number from 1, or \"offsets\"".to_owned()),
        }
    }
}

impl From<Hotness> for Spelled {
    fn from(hotness: Hotness) -> Spelled {
        match hotness {
            Hotness::Fixed(hotness) => Spelled::Number(hotness),
            Hotness::Ragged => Spelled::Word("offsets".to_owned()),
        }
    }
}

/// Function of dense values before they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    /// `ln(max(x, 0) + 1)`.
    #[default]
    Log1p,
    /// Values as they are.
    None,
}

impl Transform {
    /// The stored value of an input value.
    #[must_use]
    pub fn apply(self, value: f64) -> f32 {
        match self {
            Transform::Log1p => value.max(0.0).ln_1p() as f32,
            Transform::None => value as f32,
        }
    }
}
