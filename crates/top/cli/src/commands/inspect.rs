//! `steptime inspect`.

use steptime_answers::InspectReport;
use steptime_predict::Choice;

use super::{Failure, load};
use crate::cli::Inspect;
use crate::console::Console;
use crate::{progress, report};

pub fn run(args: &Inspect, console: &Console<'_>) -> Result<(), Failure> {
    let input = load::everything(&args.input)?;
    let choice = Choice { rank: args.part.rank, step: args.part.step };
    let answer = progress::spin("joining", || InspectReport::build(&input, &choice))?;
    Ok(console.print_answer(args.form, &answer, report::inspect::text, report::inspect::csv)?)
}
