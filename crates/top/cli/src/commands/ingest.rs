//! `steptime ingest`, and the answer to `steptime query`.

use std::num::NonZeroUsize;

use steptime_answers::IngestReport;
use steptime_fleet::{self, Shard};

use super::Failure;
use crate::cli::Ingest;
use crate::console::Console;
use crate::progress::Progress;
use crate::report;

pub fn run(args: &Ingest, console: &Console<'_>) -> Result<(), Failure> {
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let what = steptime_fleet::Ingest {
        runs: &args.runs,
        name: args.run.as_deref(),
        workers: args.workers.map_or_else(processors, NonZeroUsize::get),
        shard: args.shard.unwrap_or(Shard::WHOLE),
    };
    let progress = Progress::bytes();
    let report = steptime_fleet::ingest(&what, &args.output, &|done, total| progress.report(done, total))?;
    drop(progress);
    let answer = IngestReport::new(&args.output, &report);
    Ok(console.print_answer(args.form, &answer, report::ingest::text, report::ingest::csv)?)
}

/// Returns an error that names the Python package, which runs queries.
pub fn query() -> Result<(), Failure> {
    Err("lakes are queried by the Python package: pip install 'steptime[query]', then steptime query LAKE \
         --list"
        .into())
}
