//! `steptime scale`.

mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::ScaleReport;
use steptime_eager::Model;
use steptime_predict::{Choice, GpuCount, shard};

use super::pricing::QueryOptions;
use super::{Failure, load, pricing};
use crate::cli::{Form, HostChoice, OutputFile, Pricing, one_host, optional_host, positive};
use crate::commands::usage;
use crate::console::Console;
use crate::{output, progress};

/// `steptime scale`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime scale examples/models/dlrm_mlperf.toml --gpus 1,2,4,8 --device h200 --price 3.50
    steptime scale examples/models/dlrm_mlperf.toml --gpus 8,16 --nodes 1,2 --weak --device h200
    steptime scale examples/resnet50_32 --weak --plot scale.svg    # a recording: data parallel")]
pub struct Scale {
    /// The description of a model (.toml), or the step of one GPU: a recording with an execution trace, or an execution trace
    #[arg(value_name = "INPUT")]
    pub model: PathBuf,
    /// Numbers of GPUs, comma-separated, each predicted
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub gpus: Vec<u32>,
    /// Number of nodes (GPUs are divided evenly): one number, or one for each number of GPUs [default: by the usual number of GPUs per node]
    #[arg(long, value_name = "M,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub nodes: Vec<u32>,
    /// The GPUs: a shipped profile's name, or a profile's folder [default: that of the recording]
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Source of host times: `own` (those of the recording), `default` (a typical host, shipped with steptime), a profile's file, a
    /// probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    #[serde(deserialize_with = "optional_host")]
    pub host: Option<HostChoice>,
    /// Weak scaling: each GPU keeps the input's number of samples; without it, all GPUs share them
    #[arg(long)]
    pub weak: bool,
    /// Plot samples per second and efficiency over the number of GPUs
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Price per GPU-hour; adds the cost per billion samples
    #[arg(long, value_name = "MONEY", value_parser = positive)]
    pub price: Option<f64>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

pub fn run(args: &Scale, console: &Console<'_>) -> Result<(), Failure> {
    let mut numbers = numbers(args)?;
    numbers.sort_unstable();
    numbers.dedup();
    let answer = if load::is_description(&args.model) {
        described(args, numbers)?
    } else {
        recorded(args, console, &numbers)?
    };
    if let Some(path) = &args.plot {
        let text = report::plot(&answer);
        output::write_file(path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Predicts the step of one GPU on several, with averaged gradients.
fn recorded(args: &Scale, console: &Console<'_>, numbers: &[GpuCount]) -> Result<ScaleReport, Failure> {
    let step = load::step(console, &args.model, &Choice::default())?;
    let question = pricing::ask(&step, &args.pricing, args.host.as_ref())?;
    let question = match &args.device {
        Some(name) => question.on(name)?,
        None => question,
    };
    let asked = question.what_ifs()?;
    let on = progress::spin("simulating", || asked.on_gpus(numbers, args.weak))?;
    Ok(ScaleReport::from_step(&step, asked.before(), &on, args.weak, args.price))
}

/// Predicts a described model, its tables placed again for each number of GPUs.
fn described(args: &Scale, numbers: Vec<GpuCount>) -> Result<ScaleReport, Failure> {
    let Some(device) = &args.device else {
        return Err(usage("scale", "a described model does not name a GPU: give --device").into());
    };
    let model = load::model(&args.model)?;
    let each = model.batch() / u64::from(model.gpus());
    let models: Result<Vec<Model>, _> = numbers
        .into_iter()
        .map(|(gpus, nodes)| {
            let model = match args.weak {
                true => model.on_gpus(1)?.with_batch(each * u64::from(gpus))?.on_gpus(gpus)?,
                false => model.on_gpus(gpus)?,
            };
            nodes.map_or(Ok(model.clone()), |nodes| model.in_nodes(nodes))
        })
        .collect();
    let models = models.map_err(|problem| format!("{}: {problem}", args.model.display()))?;
    let ask = QueryOptions::read(Some(device), &args.pricing, args.host.as_ref())?;
    let placements = progress::spin("simulating", || shard::each(models, &args.model, &ask))?;
    Ok(ScaleReport::from_placements(&placements, args.weak, args.price))
}

/// Returns each number of GPUs, with its number of nodes if given.
fn numbers(args: &Scale) -> Result<Vec<GpuCount>, Failure> {
    let nodes = match args.nodes[..] {
        [] => vec![None; args.gpus.len()],
        [nodes] => vec![Some(nodes); args.gpus.len()],
        _ if args.nodes.len() == args.gpus.len() => args.nodes.iter().copied().map(Some).collect(),
        _ => {
            let words = format!(
                "--nodes has {} numbers, and --gpus has {}: give one for all, or one for each",
                args.nodes.len(),
                args.gpus.len()
            );
            return Err(usage("scale", &words).into());
        }
    };
    Ok(args.gpus.iter().copied().zip(nodes).collect())
}
