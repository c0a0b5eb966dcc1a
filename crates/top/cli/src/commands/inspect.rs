//! `steptime inspect`.

use steptime::Choice;
use steptime::answers::Inspected;

use super::{Failure, load};
use crate::cli::Inspect;
use crate::{output, progress, report};

/// Runs it.
pub fn run(args: &Inspect) -> Result<(), Failure> {
    let input = load::everything(&args.input)?;
    let choice = Choice { rank: args.part.rank, step: args.part.step };
    let answer = progress::spin("joining", || Inspected::of(&input, &choice))?;
    Ok(output::print_answer(args.form, &answer, report::inspect::text, report::csv::inspected)?)
}
