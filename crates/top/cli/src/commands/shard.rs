//! `steptime shard`.

use steptime_answers::PlacementReport;
use steptime_predict::shard::{self, Format, SearchConstraints};
use steptime_trace::Bytes;

use super::pricing::QueryOptions;
use super::{Failure, load};
use crate::cli::{PlanFormat, ShardTables, usage};
use crate::console::Console;
use crate::{output, progress, report};

pub fn run(args: &ShardTables, console: &Console<'_>) -> Result<(), Failure> {
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
    Ok(console.print_answer(args.form, &answer, report::shard::text, report::shard::csv)?)
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
