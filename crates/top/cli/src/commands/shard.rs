//! `steptime shard`.

mod report;

use std::path::PathBuf;

use clap::Args;
use clap::ValueEnum;
use serde::Deserialize;
use steptime_answers::PlacementReport;
use steptime_predict::shard::{self, Format, SearchConstraints};
use steptime_trace::Bytes;

use super::pricing::QueryOptions;
use super::{Failure, load};
use crate::cli::{Form, HostChoice, OutputFile, Pricing, one_host, optional_host, positive};
use crate::commands::usage;
use crate::console::Console;
use crate::{output, progress};

/// `steptime shard`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime shard examples/models/dlrm_mlperf.toml --gpus 8 --device h200 -o plan.json
    steptime shard examples/models/dlrm_mlperf.toml --device h200 --evaluate plan.json
    steptime shard model.toml --gpus 8 --device h200 --host-memory 1000 --indices zipf:1.05

A plan names tables by their numbers in the description: t_0, t_1, ...; a plan by TorchRec or HugeCTR is read too if its tables' \
names end in these numbers.")]
pub struct ShardTables {
    /// The description of a model (.toml)
    pub model: PathBuf,
    /// Number of GPUs [default: that of the plan, with --evaluate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536), required_unless_present = "evaluate")]
    pub gpus: Option<u32>,
    /// Number of nodes (GPUs are divided evenly); data between nodes goes over their network [default: by the usual number of GPUs per node]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Option<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: String,
    /// Source of host times: `default` (a typical host, shipped with steptime), a profile's file, a probe's file, or a recording with a
    /// probe
    #[arg(long, value_name = "default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Memory that the job may use on each GPU, in GiB [default: nine tenths of the GPU's memory]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub memory: Option<f64>,
    /// Host memory of a node, in GiB, for the tables of all GPUs of the node together; tables in host memory have a cache of rows on
    /// their GPU [default: none]
    #[arg(long, value_name = "GIB", value_parser = positive)]
    pub host_memory: Option<f64>,
    /// Predict the step time with this plan, without a search
    #[arg(long, value_name = "PLAN.json", conflicts_with_all = ["memory", "host_memory"])]
    pub evaluate: Option<PathBuf>,
    /// Write the plan
    #[arg(long, short, value_name = "PLAN.json")]
    pub output: Option<OutputFile>,
    /// Format of the written plan
    #[arg(long, value_enum, default_value_t = PlanFormat::Torchrec, requires = "output")]
    pub format: PlanFormat,
    /// Path of the tables' module in the model that will use the plan, as TorchRec names it
    #[arg(long, value_name = "PATH", default_value = "sparse_arch.embedding_bag_collection")]
    pub module: String,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

/// File format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanFormat {
    /// TorchRec's serialized `ShardingPlan`
    Torchrec,
    /// HugeCTR's `shard_matrix` and `shard_strategy`
    Hugectr,
}

pub fn run(args: &ShardTables, console: &Console<'_>) -> Result<(), Failure> {
    args.output.as_deref().map_or(Ok(()), output::check_writable)?;
    let model = load::model(&args.model)?;
    let ask = QueryOptions::read(Some(&args.device), &args.pricing, args.host.as_ref())?;
    let indices = ask.indices().clone();
    let (placed, answer) = match &args.evaluate {
        Some(plan) => {
            let (named, homes) = shard::read_plan(plan, &model).map_err(steptime_predict::Error::from)?;
            if args.gpus.is_some_and(|gpus| gpus < named) {
                let words = format!("--gpus is less than the {named} GPUs that {} names", plan.display());
                return Err(usage("shard", &words).into());
            }
            let gpus = args.gpus.unwrap_or(named);
            let homes = shard::missing(&model, homes, &indices);
            let placed = model.on(gpus, homes).and_then(|placed| match args.nodes {
                Some(nodes) => placed.in_nodes(nodes),
                None => Ok(placed),
            });
            let placed = placed.map_err(|problem| format!("{}: {problem}", plan.display()))?;
            let placement = progress::spin("simulating", || shard::place(placed, &args.model, &ask))?;
            let answer = PlacementReport::from_placement(&placement);
            (placement.model, answer)
        }
        None => {
            let (device, memory) = memory(args)?;
            let gpus = args.gpus.unwrap_or(1);
            // The description's nodes apply only to its own number of GPUs.
            let said = model.nodes().filter(|_| model.gpus() == gpus);
            let nodes = args.nodes.or(said);
            let host_memory = args.host_memory.map(gib);
            let wanted = SearchConstraints {
                gpus,
                device: &device,
                memory,
                host_memory,
                indices: &indices,
                nodes,
                path: &args.model,
            };
            let sharded = progress::spin("searching", || shard::shard(&model, &wanted, &ask))?;
            let answer = PlacementReport::found(&sharded);
            (sharded.best.model, answer)
        }
    };
    if let Some(path) = &args.output {
        let format = match args.format {
            PlanFormat::Torchrec => Format::TorchRec,
            PlanFormat::Hugectr => Format::HugeCtr,
        };
        let plan = shard::write_plan(&placed, format, &args.module).map_err(steptime_predict::Error::from)?;
        let text = serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?;
        output::write_file(path, |out| writeln!(out, "{text}"))?;
    }
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Returns the GPU's name, and the memory that a job may use on it.
fn memory(args: &ShardTables) -> Result<(String, Bytes), Failure> {
    let spec = steptime_predict::device(&args.device)?.spec;
    let memory = args.memory.map(gib).unwrap_or_else(|| shard::usable(Bytes(spec.memory.bytes)));
    Ok((spec.name, memory))
}

fn gib(gib: f64) -> Bytes {
    Bytes((gib * f64::from(1 << 30)) as u64)
}
