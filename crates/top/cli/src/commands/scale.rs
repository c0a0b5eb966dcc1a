//! `steptime scale`.

use steptime::answers::Scaled;
use steptime::{Model, shard};

use super::pricing::Asking;
use super::{Failure, load};
use crate::cli::{Scale, usage};
use crate::console::Console;
use crate::{output, progress, report};

/// Runs it.
pub fn run(args: &Scale, console: &Console<'_>) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        output::spares(path, [args.model.as_path()])?;
    }
    let model = load::model(&args.model)?;
    let each = model.batch() / u64::from(model.gpus());
    let mut numbers = numbers(args)?;
    numbers.sort_unstable();
    numbers.dedup();
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
    let ask = Asking::of(Some(&args.device), &args.pricing, args.host.as_ref())?;
    let placements = progress::spin("simulating", || shard::each(models, &args.model, &ask))?;
    let answer = Scaled::of(&placements, args.weak, args.price);
    if let Some(path) = &args.plot {
        let text = report::scale::plot(&answer);
        output::write_file(path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(console.print_answer(args.form, &answer, report::scale::text, report::csv::scaled)?)
}

/// Each number of GPUs, and in how many machines they are where that is said.
fn numbers(args: &Scale) -> Result<Vec<(u32, Option<u32>)>, Failure> {
    let nodes = match args.nodes[..] {
        [] => vec![None; args.gpus.len()],
        [nodes] => vec![Some(nodes); args.gpus.len()],
        _ if args.nodes.len() == args.gpus.len() => args.nodes.iter().copied().map(Some).collect(),
        _ => {
            let words = format!(
                "--nodes names {} numbers and --gpus {}: say one for all, or one for each",
                args.nodes.len(),
                args.gpus.len()
            );
            return Err(usage("scale", &words).into());
        }
    };
    Ok(args.gpus.iter().copied().zip(nodes).collect())
}
