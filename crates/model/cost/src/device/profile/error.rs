//! Errors of the contents of a device profile.

use std::string::FromUtf8Error;

use super::format::{HEADER, MODELS, OLDEST, VERSION};
use crate::device::learn::error::TreesError;
use crate::device::spec::SpecError;

/// Reason why a text is not a `profile.toml` that this version can use, or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The text has no version.
    #[error("it has no version; write `version = {VERSION}` at its top")]
    NoVersion,
    /// The text is of another version.
    #[error(
        "it is of version {0}, and this steptime reads {VERSION}; use the steptime it was made with, or fit it again \
         with `steptime device fit`"
    )]
    Version(i64),
    /// The text is not TOML, or a field is missing, unknown or of another type. The message names line and field.
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[source] Box<toml::de::Error>),
    /// The specification has an impossible value.
    #[error("device.{0}")]
    Spec(#[from] SpecError),
    /// A half-width of the formulas is negative or not a number.
    #[error("unfitted.{field} is {value}, and must be a number of 0 or more")]
    Spread {
        /// `own` or `shared`.
        field: &'static str,
        value: f64,
    },
    /// The header has fitted families, and the file of their models is missing.
    #[error("it has fitted families, and {MODELS} is not beside it")]
    NoModels,
    /// The header cannot be written as TOML.
    #[error("it cannot be written: {0}")]
    Unwritable(#[source] Box<toml::ser::Error>),
}

/// Reason why this version cannot use models, or why they do not match their `profile.toml`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// The file is shorter than its first fields, or a number is cut off.
    #[error("it is cut off: it ends too early")]
    Short,
    /// The file is not one of models.
    #[error("it does not begin with the mark of such a file")]
    Magic,
    /// The file is of another version.
    #[error("it is of version {0}, and this steptime reads {OLDEST} to {VERSION}")]
    Version(u32),
    /// The file was written with another `profile.toml`.
    #[error("it does not belong to the {HEADER} in its folder, or that file was edited")]
    OtherHeader,
    /// The checksum is wrong.
    #[error("it is cut off or damaged")]
    Damaged,
    /// The models of a family cannot be packed or unpacked.
    #[error("the models of a family cannot be packed or unpacked: {0}")]
    Zstd(#[source] std::io::Error),
    /// Bytes are left over.
    #[error("it has bytes after its end")]
    Spare,
    /// A byte that marks a following model is neither 0 nor 1.
    #[error("a flag is neither 0 nor 1")]
    Present,
    /// Trees are inconsistent.
    #[error(transparent)]
    Trees(#[from] TreesError),
    /// Layers of a network have inconsistent sizes.
    #[error("layers of a network do not fit together")]
    Layers,
    /// The range of a stage is empty or not finite.
    #[error("the range of a stage is empty or not finite")]
    Range,
    /// The name of a kind is not text.
    #[error("the name of a kind is not text: {0}")]
    Name(#[from] FromUtf8Error),
    /// The two files differ in the number of families.
    #[error("there are {families} families, and models of {models}")]
    Families {
        /// Number of families in the header.
        families: usize,
        /// Number of families with models.
        models: usize,
    },
    /// The family is unknown in this version.
    #[error("unknown family {0}")]
    UnknownFamily(String),
    /// A family has other features than in this version.
    #[error("its features of {0} are not those of this steptime")]
    Features(String),
    /// Trees of a family take other features than it has.
    #[error("trees of {0} take other features than it has")]
    TreeColumns(String),
    /// The two files differ in the number of a family's stages.
    #[error("{family}: the header lists {header} stages, the models have {models}")]
    Stages {
        family: String,
        /// Number of stages in the header.
        header: usize,
        /// Number of stages with models.
        models: usize,
    },
    /// A stage has other features than in this version.
    #[error("the features of a stage of {0} are not those of this steptime")]
    StageFeatures(String),
    /// A stage takes other features than it has.
    #[error("a stage of {0} takes other features than it has")]
    StageColumns(String),
}

/// Reason why a profile could not be put into the contents of its two files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// Error of the readable file.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Error of the models.
    #[error(transparent)]
    Models(#[from] ModelsError),
}
