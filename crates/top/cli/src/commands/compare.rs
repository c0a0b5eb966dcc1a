//! `steptime compare`.

use steptime_answers::Difference;

use super::{Failure, what_if};
use crate::cli::Compare;
use crate::console::Console;
use crate::progress;
use crate::report;

pub fn run(args: &Compare, console: &Console<'_>) -> Result<(), Failure> {
    let (a, b) = (what_if::open(console, &args.a, &args.whom)?, what_if::open(console, &args.b, &args.whom)?);
    let (of_a, of_b) = (what_if::question(&a, &args.whom)?, what_if::question(&b, &args.whom)?);
    let found = progress::spin("simulating", || {
        Ok::<_, steptime_predict::Error>((of_a.simulate()?, of_b.simulate()?))
    })?;
    let answer = Difference::between((&a, &found.0), (&b, &found.1));
    console.print_answer(args.form, &answer, report::difference::text, report::difference::csv)?;
    match args.fail_above {
        Some(most) if answer.longer > most => Err(format!(
            "{} takes {:.2} % longer than {}, more than the {} % of --fail-above",
            args.b.display(),
            100.0 * answer.longer,
            args.a.display(),
            100.0 * most
        )
        .into()),
        _ => Ok(()),
    }
}
