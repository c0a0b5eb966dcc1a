//! `steptime gather-plan`.

use clap::Args;
use serde::Deserialize;

/// `steptime gather-plan`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime gather-plan --rows 8192 --dim 4096 --lookups 16384
    steptime gather-plan --rows 1000000 --dim 128 --lookups 262144 --zipf 1.05 --json
    steptime gather-plan --explain")]
pub struct GatherPlan {
    /// E: rows of the table
    #[arg(long, value_name = "E", required_unless_present = "explain", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// D: columns, 4 bytes each
    #[arg(long, value_name = "D", required_unless_present = "explain", value_parser = clap::value_parser!(u64).range(1..))]
    pub dim: Option<u64>,
    /// N: lookups
    #[arg(long, value_name = "N", required_unless_present = "explain", value_parser = clap::value_parser!(u64).range(1..))]
    pub lookups: Option<u64>,
    /// Zipf exponent A of row accesses: the n-th most accessed row is accessed n^-A times as often as the first
    #[arg(long, value_name = "A", conflicts_with = "indices", allow_negative_numbers = true)]
    pub zipf: Option<f64>,
    /// File of indices below E, one per line; row access counts are taken from it
    #[arg(long, value_name = "FILE")]
    pub indices: Option<String>,
    /// A shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER", default_value = "h200")]
    pub device: String,
    /// Print JSON
    #[arg(long, conflicts_with = "explain")]
    pub json: bool,
    /// Explain a case step by step: by default a table of 8192 rows of 4096 columns, and 16,384 lookups
    #[arg(long)]
    pub explain: bool,
}
