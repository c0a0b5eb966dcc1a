//! Any Parquet file, by a list of columns.

mod parse;
mod reader;
mod types;
mod values;

use std::path::{Path, PathBuf};

use super::parsed::Parsed;
use super::{ConvertOptions, Input, Report, convert};
use crate::{Error, Hotness};
use reader::{Part, Reader};

/// Columns of Parquet files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParquetColumns {
    /// The label: numbers or booleans. A row without a finite label is damaged.
    pub label: String,
    /// Dense columns: numbers or booleans. A null is 0; a row with a value that is not finite is damaged.
    pub dense: Vec<String>,
    /// Categorical columns.
    pub categorical: Vec<ParquetColumn>,
}

/// A categorical column of Parquet files: whole numbers, booleans, texts, bytes, or lists of these.
///
/// Equal numbers are one category, and equal texts. Texts are compared by 64 bits of hash. Null and the number -1 are
/// missing values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetColumn {
    /// Name.
    pub name: String,
    /// Number of elements of each list; a row with another number is damaged. Without it lists have any number, and the
    /// column of the dataset has offsets. Columns without lists have one category a row in any case.
    pub hotness: Option<u32>,
}

impl ParquetColumn {
    /// Column with a category a row, or with lists of any length.
    #[must_use]
    pub fn new(name: &str) -> ParquetColumn {
        ParquetColumn { name: name.to_owned(), hotness: None }
    }
}

/// Converts Parquet files to the dataset `place`. Rows keep the order of the files.
///
/// With [`IdRule::Stored`](crate::IdRule::Stored) categories are whole numbers from 0, and are the indices; null is 0, and
/// a row with another number is damaged.
///
/// # Errors
///
/// If an option is impossible, a file cannot be read or does not have the columns, the place is occupied or cannot be
/// written, no row is valid, or the ids of frequent categories exceed the memory limit. Nothing is left at the place
/// then.
pub fn parquet(
    files: &[PathBuf],
    columns: &ParquetColumns,
    place: &Path,
    options: &ConvertOptions,
) -> Result<Report, Error> {
    convert(&Files::new(files, columns, options)?, place, options)
}

/// Parquet files with the same columns.
struct Files<'a> {
    files: Vec<PathBuf>,
    columns: &'a ParquetColumns,
    names: Vec<String>,
    hotness: Vec<Hotness>,
    options: &'a ConvertOptions,
}

impl<'a> Files<'a> {
    fn new(
        files: &[PathBuf],
        columns: &'a ParquetColumns,
        options: &'a ConvertOptions,
    ) -> Result<Files<'a>, Error> {
        let names = columns.categorical.iter().map(|column| column.name.clone()).collect();
        let mut first = None;
        for path in files {
            let hotness = types::hotness(path, columns, options.ids)?;
            let first = first.get_or_insert_with(|| hotness.clone());
            if let Some(column) = first.iter().zip(&hotness).position(|(first, other)| first != other) {
                return Err(Error::ColumnType {
                    path: path.clone(),
                    column: columns.categorical[column].name.clone(),
                    found: "a list here and no list in the first file, or the other way round".to_owned(),
                    role: "a categorical column",
                    expected: "the same kind in all files",
                });
            }
        }
        let hotness = first.unwrap_or_else(|| vec![Hotness::Fixed(1); columns.categorical.len()]);
        Ok(Files { files: files.to_vec(), columns, names, hotness, options })
    }
}

impl Input for Files<'_> {
    type Part = Part;

    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn label(&self) -> &str {
        &self.columns.label
    }

    fn dense(&self) -> &[String] {
        &self.columns.dense
    }

    fn categorical(&self) -> &[String] {
        &self.names
    }

    fn hotness(&self, column: usize) -> Hotness {
        self.hotness[column]
    }

    fn parts(&self) -> impl FnMut() -> Result<Option<Part>, Error> + Send {
        let mut reader = Reader::new(&self.files, self.columns);
        move || reader.next()
    }

    fn parse(&self, part: Part) -> Result<Parsed, Error> {
        Ok(parse::parse(part, self.columns, &self.hotness, self.options))
    }
}
