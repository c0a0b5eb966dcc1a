//! `steptime choose`.

mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::ChooseReport;
use steptime_predict::{Choice, Prices};

use super::{Failure, load, pricing};
use crate::cli::{Form, HostChoice, Part, Pricing, one_host, optional_host};
use crate::commands::usage;
use crate::console::Console;
use crate::progress;

/// `steptime choose`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime choose examples/dlrm_default_2048
    steptime choose examples/resnet50_32 --device h100,a100,l4,t4 --price prices.toml
    steptime choose examples/models/dcn_v2.toml --device h200,l40s --json

Prices are TOML, one line per GPU by its profile's name, per GPU-hour and all in one currency:
    h100 = 2.50
    l4 = 0.70")]
pub struct Choose {
    /// A recording with an execution trace, an execution trace, or the description of a model (.toml)
    pub input: PathBuf,
    /// GPUs, comma-separated: names of shipped profiles, folders of profiles, or `all` shipped ones
    #[arg(long, value_name = "NAME|FOLDER,..|all", value_delimiter = ',', default_value = "all")]
    pub device: Vec<String>,
    /// Prices per GPU-hour; GPUs are then listed by cost
    #[arg(long, value_name = "FILE.toml")]
    pub price: Option<PathBuf>,
    /// Samples in the recorded batch [default: as noted in the recording]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub recorded_batch: Option<u64>,
    /// Source of host times: `own` (those of the recording), `default` (a typical host, shipped with steptime), a profile's file, a
    /// probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// Name for all shipped GPUs.
const ALL: &str = "all";

pub fn run(args: &Choose, console: &Console<'_>) -> Result<(), Failure> {
    let devices = devices(args)?;
    let prices = args.price.as_deref().map_or(Ok(Prices::default()), Prices::read)?;
    if let Some(gpu) = devices.iter().find(|gpu| devices.iter().filter(|other| other == gpu).count() > 1) {
        return Err(usage("choose", &format!("--device names {gpu} twice")).into());
    }
    if !prices.is_empty() && devices.iter().all(|gpu| prices.per_hour(gpu).is_none()) {
        let path = args.price.as_deref().unwrap_or(std::path::Path::new("")).display();
        return Err(format!(
            "{path} has no price for {}: write one line per GPU, as {} = 2.50",
            devices.join(", "),
            devices[0]
        )
        .into());
    }
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let step = load::step(console, &args.input, &choice)?;
    let question = pricing::ask(&step, &args.pricing, args.host.as_ref())?;
    let found = progress::spin("simulating", || question.choose(&devices, args.recorded_batch))?;
    let answer = ChooseReport::from_choice(&found, &step, &prices);
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Returns the GPUs named on the command line.
fn devices(args: &Choose) -> Result<Vec<&str>, Failure> {
    let named: Vec<&str> =
        args.device.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    match named[..] {
        [] => Err(usage("choose", "--device names no GPU").into()),
        [ALL] => Ok(steptime_predict::devices().collect()),
        _ if named.contains(&ALL) => {
            Err(usage("choose", "--device all includes every shipped GPU: leave out the others").into())
        }
        _ => Ok(named),
    }
}
