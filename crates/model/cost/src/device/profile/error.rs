//! Why the contents of a device profile are refused.

use std::string::FromUtf8Error;

use super::format::{HEADER, MODELS, OLDEST, VERSION};
use crate::device::learn::error::TreesError;
use crate::device::spec::SpecError;

/// Why a text is not a `profile.toml` that this version can use, or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// It has no version.
    #[error("it has no version; write `version = {VERSION}` at its top")]
    NoVersion,
    /// It is of another version.
    #[error(
        "it is of version {0}, and this steptime reads {VERSION}; use the steptime it was made with, or fit it again \
         with `steptime device fit`"
    )]
    Version(i64),
    /// It is no TOML, or a field is missing, unknown or of another type. The message names line and field.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[source] Box<toml::de::Error>),
    /// The specification has a value that cannot be.
    #[error("device.{0}")]
    Spec(#[from] SpecError),
    /// A half-width of the formulas is negative or no number.
    #[error("unfitted.{field} is {value}, and must be a number of 0 or more")]
    Spread {
        /// `own` or `shared`.
        field: &'static str,
        /// What it holds.
        value: f64,
    },
    /// It has fitted families, and the file of their models is missing.
    #[error("it has fitted families, and {MODELS} is not beside it")]
    NoModels,
    /// It cannot be written as TOML.
    #[error("it cannot be written: {0}")]
    Unwritable(#[source] Box<toml::ser::Error>),
}

/// Why models are not ones that this version can use, or do not fit their `profile.toml`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// The file is shorter than its first fields, or a number is cut off.
    #[error("it is cut off: it ends too early")]
    Short,
    /// The file is of another kind.
    #[error("it does not begin as such a file does")]
    Magic,
    /// The file is of another version.
    #[error("it is of version {0}, and this steptime reads {OLDEST} to {VERSION}")]
    Version(u32),
    /// It was written with another `profile.toml`.
    #[error("it does not belong to the {HEADER} beside it, or that was edited")]
    OtherHeader,
    /// Its checksum is wrong.
    #[error("it is cut off or damaged")]
    Damaged,
    /// The models of a family cannot be packed or unpacked.
    #[error("the models of a family cannot be packed or unpacked: {0}")]
    Zstd(#[source] std::io::Error),
    /// Bytes are left over.
    #[error("it has bytes to spare")]
    Spare,
    /// A byte that says whether a model follows is neither 0 nor 1.
    #[error("a mark is neither 0 nor 1")]
    Present,
    /// Trees do not hold together.
    #[error(transparent)]
    Trees(#[from] TreesError),
    /// Layers of a network are of sizes that do not fit together.
    #[error("layers of a network do not fit together")]
    Layers,
    /// The range of a stage is empty or not finite.
    #[error("a range of a stage is none")]
    Range,
    /// The name of a kind is no text.
    #[error("the name of a kind is no text: {0}")]
    Name(#[from] FromUtf8Error),
    /// The two files differ in the number of families.
    #[error("there are {families} families, and models of {models}")]
    Families {
        /// Families of the header.
        families: usize,
        /// Families that have models.
        models: usize,
    },
    /// This version knows no family of that name.
    #[error("no family {0} is known")]
    UnknownFamily(String),
    /// A family has other features than in this version.
    #[error("its features of {0} are not those of this steptime")]
    Features(String),
    /// Trees of a family take other features than it has.
    #[error("trees of {0} take other features than it has")]
    TreeColumns(String),
    /// The two files differ in the number of a family's stages.
    #[error("{header} stages of {family} are told, and {models} are there")]
    Stages {
        /// The family.
        family: String,
        /// Stages of the header.
        header: usize,
        /// Stages that have models.
        models: usize,
    },
    /// A stage has other features than in this version.
    #[error("the features of a stage of {0} are not those of this steptime")]
    StageFeatures(String),
    /// A stage takes other features than it has.
    #[error("a stage of {0} takes other features than it has")]
    StageColumns(String),
}

/// Why a profile could not be put into the contents of its two files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// The readable file.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The models.
    #[error(transparent)]
    Models(#[from] ModelsError),
}
