//! `steptime gather-plan`.

mod report;

use std::path::Path;

use clap::Args;
use serde::Deserialize;
use steptime_launch::gather_plan::Problem;
use steptime_launch::{Indices, Popularity};

use self::report::Answer;
use super::{Failure, pricing};
use crate::console::Console;
use crate::report::width::{reflowed, width};

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

/// Default case of `--explain`: E, D and N.
const SEED: [u64; 3] = [8192, 4096, 16384];

pub fn run(args: &GatherPlan, console: &Console<'_>) -> Result<(), Failure> {
    let profile = steptime_predict::device(&args.device)?;
    let [rows, dim, lookups] = [args.rows, args.dim, args.lookups];
    let [rows, dim, lookups] = [rows.unwrap_or(SEED[0]), dim.unwrap_or(SEED[1]), lookups.unwrap_or(SEED[2])];
    let (indices, words) = match (args.zipf, &args.indices) {
        (None, Some(file)) => (pricing::counted(Path::new(file), rows)?, file.clone()),
        (zipf, _) => {
            let indices = zipf.map_or(Ok(Indices::Uniform), Indices::zipf)?;
            let words = indices.to_string();
            (indices, words)
        }
    };
    let wanted = match &indices {
        // The rows named in the file.
        Indices::Histogram(shares) => shares.len() as u64,
        _ => rows,
    };
    let row_bytes = dim.checked_mul(4).filter(|&bytes| bytes < 1 << 40);
    let row_bytes = row_bytes.ok_or_else(|| format!("rows of {dim} columns are too large"))?;
    let popularity = Popularity::new(wanted as f64, &indices);
    let problem = Problem { rows: wanted, row_bytes, lookups, popularity };
    let answer = Answer::new(&profile.spec, &problem, [rows, dim, lookups], words);
    if args.json {
        console.print_json(&answer)?;
    } else if args.explain {
        console.print(&reflowed(&answer.explanation(&profile.spec, &problem), width()))?;
    } else {
        console.print(&reflowed(&answer.text(), width()))?;
    }
    Ok(())
}
