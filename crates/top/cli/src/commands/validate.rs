//! `steptime validate`.

use clap::CommandFactory;
use clap::error::ErrorKind;
use steptime::trace::Want;
use steptime::{Basis, Kernels, Step, validate};

use super::pricing::Priced;
use super::{Failure, load, replay, source};
use crate::cli::{Cli, HostChoice, Validate};
use crate::report::{self, json_validate};
use crate::{output, progress};

/// Runs it.
pub fn run(args: &Validate) -> Result<(), Failure> {
    if args.replay_only {
        return replay::run(&args.recordings, args.json);
    }
    let mode = source::mode(&args.host)?;
    check(args);
    let mut repairs = Vec::new();
    let mut recordings: Vec<Step> = Vec::new();
    let priced = match args.kernels.as_str() {
        "measured" => None,
        name => Some(Priced::find(name, &args.pricing)?),
    };
    let want = Want { execution: priced.is_some(), ..Want::TIMING };
    for mut loaded in load::recordings(&args.recordings, want)? {
        source::set_process(&mut loaded.step, args.process);
        repairs.extend(loaded.repairs.map(|words| format!("{}: {words}", loaded.step.name)));
        recordings.push(loaded.step);
    }
    let mut lone: Vec<Step> = Vec::new();
    if args.lone {
        for (loaded, recorded) in load::lone(&args.recordings)?.into_iter().zip(&recordings) {
            lone.push(Step { process: recorded.process, ..loaded.step });
        }
    }
    let basis = if args.lone { Basis::ExecutionTraces(&lone) } else { Basis::Recordings };
    let kernels = priced.as_ref().map_or(Kernels::Measured, Priced::kernels);
    let validation = progress::spin("simulating", || validate(&recordings, basis, &mode, &kernels))?;
    let asked =
        json_validate::Asked { host: args.host.label(), kernels: args.kernels.clone(), lone: args.lone };
    let answer = json_validate::Answer::new(asked, &validation, repairs);
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&report::validate::text(&answer))?;
    }
    Ok(())
}

/// An execution trace has no times of its own.
fn check(args: &Validate) {
    if !args.lone {
        return;
    }
    let wrong = if args.kernels == "measured" {
        "--lone has no measured kernels: it needs --kernels NAME"
    } else if args.host == HostChoice::Own {
        "--lone has no host times of its own: it needs --host leave-one-out, default or FILE"
    } else {
        return;
    };
    Cli::command().error(ErrorKind::MissingRequiredArgument, wrong).exit();
}
