//! `steptime ingest`, and the answer to `steptime query`.

mod report;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::IngestReport;
use steptime_fleet::{self, Shard};

use super::Failure;
use crate::cli::{Form, optional_shard, shard};
use crate::console::Console;
use crate::progress::Progress;

/// `steptime ingest`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime ingest traces/monday traces/tuesday -o lake
    steptime ingest traces/monday -o lake --shard 3/16      # on the third of 16 machines
    steptime query lake --ask stragglers                    # of the Python package

A run is a trace, a recording, or a folder of traces or recordings, one per rank. The lake is a folder of Parquet files:
    lake/run=NAME/rank=R/{steps,ops,kernels,collectives,gaps}.parquet
Ranks that are in the lake already, made from files that have not changed since, are not read again.")]
pub struct Ingest {
    /// Traces, recordings, or folders of ranks
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The lake: a folder, created if missing
    #[arg(short, long, value_name = "LAKE")]
    pub output: PathBuf,
    /// Number of traces read in parallel [default: the number of processors]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Only every Nth file, from the Ith on: 1/4, 2/4, 3/4 and 4/4 are all
    #[arg(long, value_name = "I/N", value_parser = shard)]
    #[serde(deserialize_with = "optional_shard")]
    pub shard: Option<Shard>,
    /// Name of the run [default: that of its folder or file]
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Output format of the summary.
    #[command(flatten)]
    pub form: Form,
}

/// `steptime query`, a command of the Python package; all arguments after it are accepted.
#[derive(Debug, Args)]
pub struct Query {
    /// A lake, and the query
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "LAKE SQL")]
    pub rest: Vec<String>,
}

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
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Returns an error that names the Python package, which runs queries.
pub fn query() -> Result<(), Failure> {
    Err("lakes are queried by the Python package: pip install 'steptime[query]', then steptime query LAKE \
         --list"
        .into())
}
