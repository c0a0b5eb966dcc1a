//! `steptime scale`.

use steptime::answers::Scaled;
use steptime::{Model, shard};

use super::pricing::Asking;
use super::{Failure, load};
use crate::cli::Scale;
use crate::console::Console;
use crate::{progress, report};

/// Runs it.
pub fn run(args: &Scale, console: &Console<'_>) -> Result<(), Failure> {
    let model = load::model(&args.model)?;
    let each = model.batch() / u64::from(model.gpus());
    let mut numbers = args.gpus.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let models: Result<Vec<Model>, _> = numbers
        .into_iter()
        .map(|gpus| match args.weak {
            true => model.on_gpus(1)?.with_batch(each * u64::from(gpus))?.on_gpus(gpus),
            false => model.on_gpus(gpus),
        })
        .collect();
    let models = models.map_err(|problem| format!("{}: {problem}", args.model.display()))?;
    let ask = Asking::of(Some(&args.device), &args.pricing, args.host.as_ref())?;
    let placements = progress::spin("simulating", || shard::each(models, &args.model, &ask))?;
    let answer = Scaled::of(&placements, args.weak, args.price);
    Ok(console.print_answer(args.form, &answer, report::scale::text, report::csv::scaled)?)
}
