//! `steptime compare`.

mod report;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Deserializer};
use steptime_answers::Difference;

use super::{Failure, what_if};
use crate::cli::checked;
use crate::cli::{Form, Target};
use crate::console::Console;
use crate::progress;

/// `steptime compare`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime compare examples/dlrm_default_2048 examples/dlrm_default_fused_2048
    steptime compare before/ after/ --fail-above 5%

With --fail-above the exit code is 1 if the second takes that much longer than the first: for continuous integration.")]
pub struct Compare {
    /// A recording, or a trace
    pub a: PathBuf,
    /// Another to compare with it
    pub b: PathBuf,
    /// Maximum slowdown in percent: fail if the second takes longer than the first by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    #[serde(deserialize_with = "optional_percent")]
    pub fail_above: Option<f64>,
    /// Device, host and part of both inputs.
    #[command(flatten)]
    pub whom: Target,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

pub fn run(args: &Compare, console: &Console<'_>) -> Result<(), Failure> {
    let (a, b) = (what_if::open(console, &args.a, &args.whom)?, what_if::open(console, &args.b, &args.whom)?);
    let (of_a, of_b) = (what_if::question(&a, &args.whom)?, what_if::question(&b, &args.whom)?);
    let found = progress::spin("simulating", || {
        Ok::<_, steptime_predict::Error>((of_a.simulate()?, of_b.simulate()?))
    })?;
    let answer = Difference::between((&a, &found.0), (&b, &found.1));
    console.print_answer(args.form, &answer, report::text, report::csv)?;
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

/// Reads a percentage, with its sign or without, as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err("it is a percentage, not below 0: 5%".into()),
    }
}

fn optional_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    checked::optional(deserializer, percent)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percentages_are_read_with_and_without_their_sign() {
        assert_eq!((percent("5%"), percent("2.5 %"), percent("0")), (Ok(0.05), Ok(0.025), Ok(0.0)));
        for text in ["", "%", "-1%", "inf", "five", "5%%"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
