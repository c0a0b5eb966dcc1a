//! `steptime roofline`.

use steptime_answers::RooflineReport;
use steptime_predict::{Choice, Error};

use super::{Failure, load, pricing};
use crate::cli::Roofline;
use crate::console::Console;
use crate::report::roofline::{csv, plot, text};
use crate::{output, progress};

pub fn run(args: &Roofline, console: &Console<'_>) -> Result<(), Failure> {
    let choice = Choice { step: args.part.step, rank: args.part.rank };
    let step = load::step(console, &args.input, &choice)?;
    let mut question = pricing::ask(&step, &args.pricing, None)?;
    if let Some(name) = &args.device {
        question = question.on(name)?;
    }
    let roofline = match progress::spin("pricing", || question.roofline()) {
        // A trace of kernels without ops still has kernel times.
        Err(Error::NoArguments { .. }) if args.device.is_none() => {
            if args.plot.is_some() {
                let place = args.input.display();
                return Err(format!("{place}: --plot needs the arithmetic of kernels, which is not known without arguments of ops: leave \
                                    --plot out for times by kernel name, or profile with record_shapes=True").into());
            }
            let answer = RooflineReport::from_named_kernels(&question.kernels_by_name()?, &step);
            return Ok(console.print_answer(args.form, &answer, text, csv)?);
        }
        roofline => roofline?,
    };
    let answer = RooflineReport::from_roofline(&roofline, &step);
    if let Some(path) = &args.plot {
        let svg = plot(&answer, &roofline.spec);
        output::write_file(path, |out| out.write_all(svg.as_bytes()))?;
    }
    Ok(console.print_answer(args.form, &answer, text, csv)?)
}
