//! `steptime roofline`.

use steptime::Choice;
use steptime::trace::Want;

use super::{Failure, load, pricing};
use crate::cli::Roofline;
use crate::output;
use crate::report::roofline::{Answer, plot};

/// Runs it.
pub fn run(args: &Roofline) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        output::spares(path, [args.input.as_path()].into_iter().chain(args.pricing.file()))?;
    }
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let step = load::step(&args.input, &choice, Want::ALL)?.step;
    let mut question = pricing::ask(&step, &args.pricing)?;
    if let Some(name) = &args.device {
        question = question.on(name)?;
    }
    let roofline = question.roofline()?;
    let answer = Answer::new(&step, &roofline);
    if let Some(path) = &args.plot {
        let svg = plot(&answer, &roofline.spec);
        output::write_file(path, |out| out.write_all(svg.as_bytes()))?;
    }
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&answer.text())?;
    }
    Ok(())
}
