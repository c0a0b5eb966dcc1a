//! `steptime predict`.

mod args;
mod gpus_report;
mod report;
mod world;

use std::sync::Arc;

use rayon::prelude::*;
use steptime_answers::{CompareReport, JobPredictionReport, PredictionReport, chrome};
use steptime_eager::Model;
use steptime_predict::{Baseline, Choice, Error, Query, QueryFor, RankSet, Step};

pub use self::args::Predict;
use self::args::{Method, World};
use super::load::Opened;
use super::pricing::QueryOptions;
use super::{Failure, host_source, load, pricing};
use crate::cli::HostChoice;
use crate::commands::usage;
use crate::console::Console;
use crate::report::job;
use crate::{output, progress};

pub fn run(args: &Predict, console: &Console<'_>) -> Result<(), Failure> {
    check(args)?;
    if args.world.ranks.is_some() {
        return in_world(args, console, None);
    }
    if let Some(path) = &args.world.changes {
        let model = load::is_description(&args.input).then(|| load::model(&args.input)).transpose()?;
        return match model.filter(|model| model.gpus() > 1) {
            Some(model) => in_world(args, console, Some(&model)),
            None => Err(format!(
                "{}: --changes applies to every rank of a job: give --world RANKS, or the description of a job on several GPUs; to change one step, use `whatif --plan {}`",
                args.input.display(),
                path.display()
            )
            .into()),
        };
    }
    if let Some(option) = job_only_option(&args.world) {
        let words = format!("{option} applies to a job made from one rank's step: give --world RANKS");
        return Err(usage("predict", &words).into());
    }
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let step = match Opened::read(console, &args.input, &choice, !args.device.is_empty())? {
        Opened::Ranks(ranks) => return together(args, console, &ranks),
        Opened::Step(step) => step,
    };
    let question = question(args, &step)?;
    match args.device.as_slice() {
        [] => one(args, console, &step, &question),
        [name] => one(args, console, &step, &question.on(name)?),
        names => several(args, console, &question.on_each(names.iter().map(String::as_str))?),
    }
}

/// Returns the first given option that needs `--world`.
fn job_only_option(world: &World) -> Option<&'static str> {
    let said = [
        (world.nodes.is_some(), "--nodes"),
        (world.global_batch.is_some(), "--global-batch"),
        (world.plan.is_some(), "--plan"),
        (world.send.is_some(), "--send"),
        (world.bucket_view, "--bucket-view"),
        (world.bucket_mb.is_some(), "--bucket-mb"),
        (world.copies_apart, "--copies-apart"),
    ];
    said.into_iter().find(|(said, _)| *said).map(|(_, option)| option)
}

/// Predicts a job made from one rank's step, or a described job whose ranks are changed.
fn in_world(args: &Predict, console: &Console<'_>, job: Option<&Model>) -> Result<(), Failure> {
    simulates(args, "is for a single step, not for the simulation of a job")?;
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let step = match job {
        Some(model) => Arc::new(Step::on_one_gpu(&args.input, model)?),
        None => load::step(console, &args.input, &choice)?,
    };
    let question = question(args, &step)?;
    let question = match args.device.first() {
        Some(name) => question.on(name)?,
        None => question,
    };
    let found = progress::spin("simulating", || {
        let asked = question.what_ifs().map_err(|error| in_flags(args, error))?;
        world::spread(&args.world, &asked, job)
    })?;
    if let Some(path) = &args.timeline {
        output::write_file(path, |out| chrome::write_job(out, &found.ranks, &found.predicted))?;
    }
    let answer = JobPredictionReport::new(&found.ranks, &found.predicted).with_changes(&found.changes);
    Ok(console.print_answer(args.form, &answer, job::predicted, job::csv)?)
}

/// Refuses options that exclude the simulation of a job.
fn simulates(args: &Predict, why: &str) -> Result<(), Failure> {
    let others = [
        (args.device.len() > 1, "--device of several GPUs"),
        (args.method != Method::Simulate, "--method"),
        (args.keep_profiler, "--keep-profiler"),
    ];
    match others.into_iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(usage("predict", &format!("{option} {why}")).into()),
        None => Ok(()),
    }
}

/// Predicts the step of all ranks together.
fn together(args: &Predict, console: &Console<'_>, ranks: &RankSet) -> Result<(), Failure> {
    simulates(
        args,
        "is for a single rank, and the input holds the ranks of a job: choose one with --rank N",
    )?;
    let asking =
        QueryOptions::read(args.device.first().map(String::as_str), &args.pricing, args.host.as_ref())?;
    let ask = |step| Ok::<_, Failure>(adjusted(args, asking.query(step)?));
    let predicted = progress::spin("simulating", || ranks.predict_as(ask))?;
    if let Some(path) = &args.timeline {
        output::write_file(path, |out| chrome::write_job(out, ranks, &predicted))?;
    }
    let answer = JobPredictionReport::new(ranks, &predicted);
    Ok(console.print_answer(args.form, &answer, job::predicted, job::csv)?)
}

/// Answers a question, and writes the timeline if `--timeline` is given.
fn one(args: &Predict, console: &Console<'_>, step: &Step, question: &Query<'_>) -> Result<(), Failure> {
    let answer = match &args.timeline {
        None => progress::spin("simulating", || PredictionReport::from_query(question))
            .map_err(|error| in_flags(args, error))?,
        Some(path) => {
            let prediction = progress::spin("simulating", || question.simulate())
                .map_err(|error| in_flags(args, error))?;
            output::write_file(path, |out| chrome::write(out, &step.graph, &prediction.timeline))?;
            PredictionReport::from_prediction(&prediction, step)
        }
    };
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Answers the same question about several GPUs.
fn several(args: &Predict, console: &Console<'_>, questions: &[Query<'_>]) -> Result<(), Failure> {
    let all = || questions.par_iter().map(PredictionReport::from_query).collect();
    let answers: Result<Vec<PredictionReport>, Error> = progress::spin("simulating", all);
    let answer = CompareReport::new(answers.map_err(|error| in_flags(args, error))?);
    Ok(console.print_answer(args.form, &answer, gpus_report::text, gpus_report::csv)?)
}

/// Builds the question from the command line.
fn question<'s>(args: &Predict, step: &'s Step) -> Result<Query<'s>, Failure> {
    Ok(adjusted(args, pricing::ask(step, &args.pricing, args.host.as_ref())?))
}

/// Applies the other options of the command line to a question.
fn adjusted<'s>(args: &Predict, mut question: Query<'s>) -> Query<'s> {
    if args.keep_profiler {
        question = question.as_profiled();
    }
    if let Some(times) = args.host_speed {
        question = question.slower(times);
    }
    if let Some(process) = host_source::process(args.process) {
        question = question.in_process(process);
    }
    match baseline_of(args.method) {
        Some(way) => question.by(way),
        None => question,
    }
}

/// Rewrites an error in terms of command-line options.
fn in_flags(args: &Predict, error: Error) -> Failure {
    match error {
        Error::NoHostTimes { path } => {
            let flag = if args.keep_profiler { "--keep-profiler" } else { "--host own" };
            let path = path.display();
            format!("{path}: an execution trace alone has no host times: {flag} needs a recording").into()
        }
        Error::FactorOfNoProfile => {
            "--host-speed needs a host profile: add --host default or --host FILE".into()
        }
        error => error.into(),
    }
}

/// Returns the baseline method; `None` for the simulation.
fn baseline_of(method: Method) -> Option<Baseline> {
    match method {
        Method::Simulate => None,
        Method::Paper => Some(Baseline::Paper),
        Method::PaperPublished => Some(Baseline::PaperPublished),
        Method::KernelSum => Some(Baseline::KernelSum),
    }
}

/// Refuses conflicts between values of options, which clap cannot express.
fn check(args: &Predict) -> Result<(), Failure> {
    let conflict = |words: &str| Err(usage("predict", words).into());
    if args.timeline.is_some() && args.method != Method::Simulate {
        return conflict("--timeline needs --method simulate: the other methods have no timeline");
    }
    if args.timeline.is_some() && args.device.len() > 1 {
        return conflict("--timeline shows one device: give a single --device");
    }
    if args.keep_profiler && args.host.as_ref().is_some_and(|host| *host != HostChoice::Own) {
        return conflict(
            "--keep-profiler needs --host own: the times of a host profile do not include the profiler's cost",
        );
    }
    Ok(())
}
