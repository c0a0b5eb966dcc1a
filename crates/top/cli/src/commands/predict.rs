//! `steptime predict`.

use std::borrow::Cow;

use clap::CommandFactory;
use clap::error::ErrorKind;
use steptime::cost::TYPICAL_SLOWNESS;
use steptime::trace::{Nanos, Want};
use steptime::{Baseline, Choice, Kernels, Step, baseline, predict};

use super::pricing::Priced;
use super::{Failure, load, source};
use crate::cli::{Cli, HostChoice, Method, Predict};
use crate::output;
use crate::report::{self, json_predict};

/// Runs it.
pub fn run(args: &Predict) -> Result<(), Failure> {
    check(args);
    if let Some(path) = &args.timeline {
        let host = match &args.host {
            Some(HostChoice::File(file)) => Some(file.as_path()),
            _ => None,
        };
        output::spares(path, [args.input.as_path()].into_iter().chain(host).chain(args.pricing.file()))?;
    }
    let priced = args.device.as_deref().map(|name| Priced::find(name, &args.pricing)).transpose()?;
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let want = if priced.is_some() { Want::ALL } else { Want::TIMING };
    let mut loaded = load::step(&args.input, &choice, want)?;
    if loaded.step.arguments.is_derived() && priced.is_none() {
        return Err(steptime::Error::NoTiming { path: loaded.step.path }.into());
    }
    // The step as it was profiled can be replayed of a CPU too; there is none to predict.
    if !args.keep_profiler || !loaded.step.accelerators.is_empty() {
        loaded.step.on_a_device().map_err(|error| loaded.with_repairs(&error))?;
    }
    source::set_process(&mut loaded.step, args.process);
    let choice = host_choice(args, &loaded.step)?;
    let mut profile = source::profile(&choice)?;
    let mut slower = args.host_speed;
    if let Some(times) = args.host_speed {
        let found = profile.ok_or("--host-speed needs a profile: say --host default, or a file, too")?;
        profile = Some(Cow::Owned(found.slowed(times)));
    } else if choice == HostChoice::Default {
        profile = profile.map(|found| Cow::Owned(found.on_any_host()));
        slower = Some(TYPICAL_SLOWNESS);
    }
    let host = source::host(profile.as_deref(), args.keep_profiler);
    let kernels = priced.as_ref().map_or(Kernels::Measured, Priced::kernels);
    let recorded = &loaded.step;
    let (time, simulated) = match baseline_of(args.method) {
        Some(way) => (baseline(recorded, &kernels, way), None),
        None => {
            let prediction = predict(recorded, &host, &kernels);
            (prediction.step, Some(prediction))
        }
    };
    if time <= Nanos::ZERO {
        let nothing = "the step would take no time: what was recorded has no durations; record it again";
        return Err(format!("{}: {nothing}", recorded.path.display()).into());
    }
    if let (Some(path), Some(simulated)) = (&args.timeline, &simulated) {
        output::write_file(path, |out| report::timeline::write(out, &recorded.graph, &simulated.timeline))?;
    }
    let asked = json_predict::Asked {
        input: args.input.display().to_string(),
        method: args.method.label(),
        host: if args.keep_profiler { "profiled".into() } else { choice.label() },
        kernels: args.device.clone().unwrap_or_else(|| "measured".into()),
        profile: priced.as_ref().map(|priced| &priced.profile),
        host_slower: slower.zip(profile.as_ref()).map(|(times, profile)| (times, profile.machine.clone())),
        host_assumed: args.host.is_none() && choice == HostChoice::Default,
        repairs: loaded.repairs,
    };
    let answer = json_predict::Answer::new(asked, recorded, time, simulated.as_ref());
    if args.json {
        output::print_json(&answer)?;
    } else {
        let path = simulated.as_ref().map(|s| report::path::runs(&recorded.graph, &s.path));
        output::print(&report::predict::text(&answer, path.unwrap_or_default()))?;
    }
    Ok(())
}

/// Where the host's times come from: as asked for, else the recording's own where it has any.
fn host_choice(args: &Predict, recorded: &Step) -> Result<HostChoice, Failure> {
    let own = args.keep_profiler || args.host == Some(HostChoice::Own);
    match (&args.host, recorded.arguments.is_derived()) {
        (_, true) if own => Err(format!(
            "{}: an execution trace alone holds no times of the host: {} needs a recording",
            recorded.path.display(),
            if args.keep_profiler { "--keep-profiler" } else { "--host own" }
        )
        .into()),
        (Some(choice), _) => Ok(choice.clone()),
        (None, true) => Ok(HostChoice::Default),
        (None, false) => Ok(HostChoice::Own),
    }
}

/// The simpler way that was asked for; `None` for the simulation.
fn baseline_of(method: Method) -> Option<Baseline> {
    match method {
        Method::Simulate => None,
        Method::Paper => Some(Baseline::Paper),
        Method::PaperPublished => Some(Baseline::PaperPublished),
        Method::KernelSum => Some(Baseline::KernelSum),
    }
}

/// What clap cannot say of arguments that exclude one another's values.
fn check(args: &Predict) {
    let conflict = |words: &str| {
        let mut command = Cli::command();
        command.build();
        let command = command.find_subcommand_mut("predict").map_or_else(Cli::command, |found| found.clone());
        command.clone().error(ErrorKind::ArgumentConflict, words).exit()
    };
    if args.timeline.is_some() && args.method != Method::Simulate {
        conflict("--timeline needs --method simulate: the other methods know no timeline");
    }
    if args.keep_profiler && args.host.as_ref().is_some_and(|host| *host != HostChoice::Own) {
        conflict("--keep-profiler needs --host own: a profile's times have no profiler in them");
    }
}
