//! The description of a dataset: `features.toml`.

use std::ops::Range;
use std::path::{Component, Path};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::{DenseType, Hotness, IdRule, IndexType, Transform};
use crate::Error;

/// Name of the description in a dataset's folder.
pub const FEATURES: &str = "features.toml";
/// Version of the format that this crate reads and writes.
pub const VERSION: u32 = 1;

/// Description of a dataset: its columns, their files, the number of rows, the splits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Version of the format.
    pub version: u32,
    /// Number of rows of all splits together.
    pub rows: u64,
    /// Source of the ids of categories.
    pub ids: IdRule,
    /// Ranges of rows for training and validation.
    pub splits: Splits,
    /// Label.
    pub label: Label,
    /// Dense columns; the file exists if there are some.
    #[serde(default)]
    pub dense: Dense,
    /// Categorical columns.
    #[serde(default)]
    pub categorical: Vec<Categorical>,
}

/// Ranges of rows, `[first, end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Splits {
    /// Rows for training.
    pub train: [u64; 2],
    /// Rows for validation, later in time.
    pub validation: [u64; 2],
}

/// A split of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitName {
    /// Rows for training.
    Train,
    /// Rows for validation.
    Validation,
}

impl Splits {
    /// Rows of a split.
    #[must_use]
    pub fn rows(&self, name: SplitName) -> Range<u64> {
        let [first, end] = match name {
            SplitName::Train => self.train,
            SplitName::Validation => self.validation,
        };
        first..end
    }
}

/// Label of each row, an `f32`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Name of the column.
    pub name: String,
    /// File, `[rows]` of `f32`.
    pub file: String,
}

/// Dense columns, together in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Type of the stored values.
    pub r#type: DenseType,
    /// Function that was applied to the values of the source.
    pub transform: Transform,
    /// File, `[rows, columns]` row by row.
    pub file: String,
}

/// A categorical column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Categorical {
    /// Name of the column.
    pub name: String,
    /// Number of categories: indices are in `0..cardinality`.
    pub cardinality: u32,
    /// Type of the stored indices.
    pub r#type: IndexType,
    /// Number of indices of a row.
    pub hotness: Hotness,
    /// File of the indices: `[rows, hotness]`, or `[values]`.
    pub file: String,
    /// File of the offsets, `[rows + 1]` of `u64`, if the hotness varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offsets: Option<String>,
    /// Number of indices of all rows, if the hotness varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u64>,
}

impl Categorical {
    /// Column with the narrowest type and usual file names; `place` is its position among the categorical columns.
    #[must_use]
    pub fn new(name: &str, cardinality: u32, hotness: Hotness, place: usize) -> Categorical {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let stem: String = format!("{place:02}_{name}").chars().map(plain).take(64).collect();
        let ragged = hotness == Hotness::Ragged;
        Categorical {
            name: name.to_owned(),
            cardinality,
            r#type: IndexType::narrowest(cardinality),
            hotness,
            file: format!("{stem}.bin"),
            offsets: ragged.then(|| format!("{stem}.offsets.bin")),
            values: ragged.then_some(0),
        }
    }
}

impl Features {
    /// Description without rows.
    #[must_use]
    pub fn new(ids: IdRule, label: &str, dense: Dense, categorical: Vec<Categorical>) -> Features {
        let label = Label { name: label.to_owned(), file: "label.bin".to_owned() };
        Features { version: VERSION, rows: 0, ids, splits: Splits::default(), label, dense, categorical }
    }

    /// Reads the description of the dataset in a folder.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is of another version, or contradicts itself.
    pub fn read(folder: &Path) -> Result<Features, Error> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let path = folder.join(FEATURES);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoDataset { path }),
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let syntax = |source| Error::Syntax { path: path.clone(), source: Box::new(source) };
        let found = toml::from_str::<Versioned>(&text).map_err(syntax)?.version;
        if found != VERSION {
            return Err(Error::Version { path, found, expected: VERSION });
        }
        let features: Features = toml::from_str(&text).map_err(syntax)?;
        features.contradiction().map_or(Ok(features), |reason| Err(Error::Description { path, reason }))
    }

    /// Names of all files beside the description.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let dense = (!self.dense.columns.is_empty()).then_some(&*self.dense.file);
        let columns = self.categorical.iter().flat_map(|c| [Some(&*c.file), c.offsets.as_deref()]);
        [Some(&*self.label.file), dense].into_iter().chain(columns).flatten()
    }

    /// The first entry that contradicts another.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let mut files: Vec<&str> = self.files().collect();
        let nested = |name: &&&str| {
            !matches!(
                Path::new(name).components().collect::<Vec<_>>()[..],
                [Component::Normal(only)] if only == **name
            )
        };
        if let Some(name) = files.iter().find(nested) {
            return Some(format!("{name:?} is not the name of a file in the folder"));
        }
        files.push(FEATURES);
        files.sort_unstable();
        if let Some(pair) = files.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("two columns use the file {}", pair[0]));
        }
        for [first, end] in [self.splits.train, self.splits.validation] {
            if first > end || end > self.rows {
                return Some(format!("the split [{first}, {end}] is not within the {} rows", self.rows));
            }
        }
        self.categorical.iter().find_map(Categorical::contradiction)
    }
}

impl Categorical {
    fn contradiction(&self) -> Option<String> {
        let Categorical { name, cardinality, r#type, hotness, .. } = self;
        if *cardinality == 0 || *cardinality > i32::MAX.cast_unsigned() {
            return Some(format!("column {name}: a cardinality of {cardinality} is not in 1..={}", i32::MAX));
        }
        if r#type.width() < IndexType::narrowest(*cardinality).width() {
            return Some(format!("column {name}: its type is too narrow for {cardinality} categories"));
        }
        let ragged = *hotness == Hotness::Ragged;
        (ragged != self.offsets.is_some() || ragged != self.values.is_some()).then(|| {
            format!(
                "column {name}: the entries `offsets` and `values` are given with hotness = \"offsets\", and only then"
            )
        })
    }
}
