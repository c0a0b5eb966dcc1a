//! Conversion of data to datasets: `steptime-train data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use steptime_dataset::convert::{
    ConvertOptions, ParquetColumn, ParquetColumns, Report, Validation, criteo, parquet,
};
use steptime_dataset::{DenseType, Hotness, IdRule, Transform};

use crate::Failure;
use crate::planted::{self, PlantedData};

/// Occurrences of a category that has an index of its own.
const THRESHOLD: u32 = 15;

/// Format of the data.
#[derive(Debug, Subcommand)]
pub enum Format {
    /// Criteo's text: a label, 13 whole numbers, 26 categories a line; plain, gz or zst
    Criteo(Criteo),
    /// Any Parquet files, by a list of columns
    Parquet(Parquet),
    /// Planted rows for a model, with known best measures
    Synthetic(PlantedData),
}

/// `steptime-train data criteo`.
#[derive(Debug, Args)]
pub struct Criteo {
    #[command(flatten)]
    common: Common,
}

/// `steptime-train data parquet`.
#[derive(Debug, Args)]
pub struct Parquet {
    /// The column of labels
    #[arg(long, value_name = "COLUMN")]
    label: String,
    /// Columns of dense values
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    dense: Vec<String>,
    /// Columns of categories; lists of always H categories are `COLUMN=H`
    #[arg(long, value_name = "COLUMN[=H]", value_delimiter = ',', value_parser = column)]
    categorical: Vec<ParquetColumn>,
    /// Categories are whole numbers from 0, and are the indices
    #[arg(long, conflicts_with_all = ["hash", "threshold"])]
    stored: bool,
    #[command(flatten)]
    common: Common,
}

/// Options of all conversions.
#[derive(Debug, Args)]
struct Common {
    /// The files, in order of time
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder of the dataset
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Occurrences of a category from which it has its own index; the others share index 0 [default: 15]
    #[arg(long, value_name = "N", conflicts_with = "hash")]
    threshold: Option<u32>,
    /// Hash categories to this number of indices a column, instead of counting them
    #[arg(long, value_name = "BUCKETS")]
    hash: Option<u32>,
    /// Share of the rows that are for validation, the last ones [default: 0.1]
    #[arg(long, value_name = "SHARE", conflicts_with = "validation_files")]
    validation: Option<f64>,
    /// Number of files that are for validation, the last ones
    #[arg(long, value_name = "N")]
    validation_files: Option<usize>,
    /// Store dense values in 16 bits
    #[arg(long)]
    f16: bool,
    /// Store dense values as they are, without a logarithm
    #[arg(long)]
    no_log: bool,
    /// Number of threads; 0 for as many as the machine has. The result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Memory for categories and rows, in MB
    #[arg(long, value_name = "MB", default_value_t = 1000)]
    memory: u64,
    /// Folder for counts that exceed the memory [default: that of the dataset]
    #[arg(long, value_name = "FOLDER")]
    temporary: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    schema: u32,
    command: &'static str,
    rows: u64,
    train: u64,
    validation: u64,
    damaged: u64,
    first_damaged: Vec<String>,
    dense: usize,
    columns: Vec<Column<'a>>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Column<'a> {
    name: &'a str,
    cardinality: u32,
    /// Categories a row, if their number is fixed.
    hotness: Option<u32>,
}

/// Converts files to a dataset.
pub fn run(format: &Format) -> Result<(), Failure> {
    let (common, report) = match format {
        Format::Synthetic(data) => return planted::run(data),
        Format::Criteo(Criteo { common }) => {
            (common, criteo(&common.files, &common.output, &common.options(false))?)
        }
        Format::Parquet(Parquet { label, dense, categorical, stored, common }) => {
            let columns = ParquetColumns {
                label: label.clone(),
                dense: dense.clone(),
                categorical: categorical.clone(),
            };
            (common, parquet(&common.files, &columns, &common.output, &common.options(*stored))?)
        }
    };
    crate::print(common.json, &answer(&report), text)
}

impl Common {
    fn options(&self, stored: bool) -> ConvertOptions {
        let ids = match (stored, self.hash) {
            (true, _) => IdRule::Stored,
            (false, Some(buckets)) => IdRule::Hash { buckets },
            (false, None) => IdRule::Frequency { threshold: self.threshold.unwrap_or(THRESHOLD) },
        };
        let default = ConvertOptions::new(ids);
        let validation = self.validation.map_or(default.validation, Validation::Fraction);
        ConvertOptions {
            validation: self.validation_files.map_or(validation, Validation::LastFiles),
            dense: if self.f16 { DenseType::F16 } else { DenseType::F32 },
            transform: if self.no_log { Transform::None } else { Transform::Log1p },
            threads: if self.threads == 0 { default.threads } else { self.threads },
            memory: self.memory.saturating_mul(1_000_000),
            temporary: self.temporary.clone(),
            ..default
        }
    }
}

fn answer(report: &Report) -> Answer<'_> {
    let features = &report.features;
    let rows = |[first, end]: [u64; 2]| end - first;
    let column = |column: &'_ steptime_dataset::Categorical| match column.hotness {
        Hotness::Fixed(hotness) => Some(hotness),
        Hotness::Ragged => None,
    };
    Answer {
        schema: 1,
        command: "data",
        rows: features.rows,
        train: rows(features.splits.train),
        validation: rows(features.splits.validation),
        damaged: report.damaged,
        first_damaged: report.first_damaged.iter().map(ToString::to_string).collect(),
        dense: features.dense.columns.len(),
        columns: features
            .categorical
            .iter()
            .map(|own| Column { name: &own.name, cardinality: own.cardinality, hotness: column(own) })
            .collect(),
        seconds: report.passes.iter().map(|pass| pass.time.as_secs_f64()).sum(),
    }
}

/// The answer as text, with the tables of a model for this data.
fn text(answer: &Answer<'_>) -> String {
    let Answer { rows, train, validation, damaged, dense, seconds, .. } = answer;
    let mut text = format!(
        "{rows} rows in {seconds:.1} s: {train} for training, {validation} for validation; {damaged} damaged rows were skipped\n"
    );
    for row in &answer.first_damaged {
        text += &format!("  {row}\n");
    }
    text += &format!("a model of it has:\ndense = {dense}\ntables = [\n");
    for Column { name, cardinality, hotness } in &answer.columns {
        let lookups = match hotness {
            Some(1) => String::new(),
            Some(hotness) => format!(", lookups = {hotness}"),
            None => ", lookups = ?".to_owned(),
        };
        text += &format!("  {{ rows = {cardinality}, columns = 16{lookups} }}, # {name}\n");
    }
    text + "]\n"
}

/// Parses `COLUMN` or `COLUMN=H`.
fn column(text: &str) -> Result<ParquetColumn, String> {
    let Some((name, hotness)) = text.split_once('=') else { return Ok(ParquetColumn::new(text)) };
    let hotness = hotness.parse().ok().filter(|&hotness: &u32| hotness > 0);
    let hotness = hotness.ok_or_else(|| format!("{text}: the number of categories is at least 1"))?;
    Ok(ParquetColumn { hotness: Some(hotness), ..ParquetColumn::new(name) })
}
