//! `steptime scale`.

use steptime_answers::ScaleReport;
use steptime_eager::Model;
use steptime_predict::{Choice, GpuCount, shard};

use super::pricing::QueryOptions;
use super::{Failure, load, pricing};
use crate::cli::{Scale, usage};
use crate::console::Console;
use crate::{output, progress, report};

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
        let text = report::scale::plot(&answer);
        output::write_file(path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(console.print_answer(args.form, &answer, report::scale::text, report::scale::csv)?)
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
                "--nodes has {} numbers and --gpus {}: give one for all, or one for each",
                args.nodes.len(),
                args.gpus.len()
            );
            return Err(usage("scale", &words).into());
        }
    };
    Ok(args.gpus.iter().copied().zip(nodes).collect())
}
