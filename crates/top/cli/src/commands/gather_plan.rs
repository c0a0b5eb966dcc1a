//! `steptime gather-plan`.

use std::path::Path;

use steptime_launch::gather_plan::Problem;
use steptime_launch::{Indices, Popularity};

use super::{Failure, pricing};
use crate::cli::GatherPlan;
use crate::console::Console;
use crate::report::gather_plan::Answer;
use crate::report::width::{reflowed, width};

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
