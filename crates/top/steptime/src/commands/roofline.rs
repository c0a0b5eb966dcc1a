//! `steptime roofline`.

use steptime::device::{self, Roof};
use steptime::trace::{Nanos, Want};
use steptime::{Choice, Subject};

use super::pricing::Priced;
use super::{Failure, load};
use crate::cli::Roofline;
use crate::output;
use crate::report::roofline::{Answer, Row, plot};

/// The device that recordings are taken to be of where no profile has their device's name.
const DEFAULT: &str = "h200";

/// Runs it.
pub fn run(args: &Roofline) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        output::spares(path, [args.input.as_path()].into_iter().chain(args.pricing.file()))?;
    }
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let subject = load::subject(&args.input, &choice, Want::ALL)?.subject;
    let name = match &args.device {
        Some(name) => name.clone(),
        None if subject.arguments.is_derived() => {
            return Err(steptime::Error::NoTiming { path: subject.path }.into());
        }
        None => recorded_on(&subject)?,
    };
    let priced = Priced::find(&name, &args.pricing)?;
    let answer =
        Answer::new(&subject, &name, args.device.is_some(), rows(&subject, &priced, args.device.is_some()));
    if let Some(path) = &args.plot {
        let svg = plot(&answer, &priced.profile.spec);
        output::write_file(path, |out| out.write_all(svg.as_bytes()))?;
    }
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&answer.text())?;
    }
    Ok(())
}

/// The shipped profile of the device that was recorded on.
fn recorded_on(subject: &Subject) -> Result<String, Failure> {
    let named = subject.meta.as_ref().and_then(|meta| meta.device.clone());
    let Some(device) = named.or_else(|| subject.graph.device.clone()) else { return Ok(DEFAULT.into()) };
    let known = device::shipped_for(&device);
    let none = || {
        format!(
            "recorded on {device}, which has no profile: name one with --device, then kernels are priced for it"
        )
    };
    Ok(known.ok_or_else(none)?.to_owned())
}

/// One row a launch: measured, or priced.
fn rows(subject: &Subject, priced: &Priced, predicted: bool) -> Vec<Row> {
    let graph = &subject.graph;
    let launches = subject.launches(&priced.indices, priced.settings);
    let prices = device::price(graph, &launches, &priced.profile, priced.models);
    let each = launches.iter().zip(&prices.estimates);
    each.filter_map(|(launch, estimate)| {
        let time = if predicted { estimate.time } else { launch.measured(graph)? };
        let roof = Roof::of(&launch.call, &launch.context, &priced.profile.spec);
        let op = launch.op.map_or("", |op| graph.op_name(op));
        (time > Nanos::ZERO).then(|| Row::new(op, launch.call.kernel.family(), time, &roof))
    })
    .collect()
}
