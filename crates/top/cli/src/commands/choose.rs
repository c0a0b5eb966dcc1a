//! `steptime choose`.

use steptime_answers::ChooseReport;
use steptime_predict::{Choice, Prices};

use super::{Failure, load, pricing};
use crate::cli::{Choose, usage};
use crate::console::Console;
use crate::progress;
use crate::report;

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
    Ok(console.print_answer(args.form, &answer, report::choose::text, report::choose::csv)?)
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
