//! `steptime predict`.

use clap::CommandFactory;
use clap::error::ErrorKind;
use steptime::{Choice, predict};

use super::{Failure, load, source};
use crate::cli::{Cli, HostChoice, Method, Predict};
use crate::output;
use crate::report::{self, json_predict};

/// Runs it.
pub fn run(args: &Predict) -> Result<(), Failure> {
    check(args);
    let profile = source::profile(&args.host)?;
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let mut loaded = load::subject(&args.input, &choice)?;
    source::set_process(&mut loaded.subject, args.process);
    let host = source::host(profile.as_deref(), args.keep_profiler);
    let method = match args.method {
        Method::Simulate => steptime::Method::Simulate,
        Method::Paper => steptime::Method::Paper,
        Method::KernelSum => steptime::Method::KernelSum,
    };
    let prediction = predict(&loaded.subject, &host, method);
    if let (Some(path), Some(simulated)) = (&args.timeline, &prediction.simulated) {
        let graph = &loaded.subject.graph;
        output::write_file(path, |out| report::timeline::write(out, graph, &simulated.timeline))?;
    }
    let asked = json_predict::Asked {
        input: args.input.display().to_string(),
        method: args.method.label(),
        host: if args.keep_profiler { "profiled".into() } else { args.host.label() },
        kernels: args.kernels.label(),
        repairs: loaded.repairs,
    };
    let answer = json_predict::Answer::new(asked, &loaded.subject, &prediction);
    if args.json {
        output::print_json(&answer)?;
    } else {
        let path = prediction.simulated.as_ref().map(|s| report::path::runs(&loaded.subject.graph, &s.path));
        output::print(&report::predict::text(&answer, path.unwrap_or_default()))?;
    }
    Ok(())
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
    if args.keep_profiler && args.host != HostChoice::Own {
        conflict("--keep-profiler needs --host own: a profile's times have no profiler in them");
    }
}
