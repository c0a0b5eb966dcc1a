//! `steptime roofline`.

mod report;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::RooflineReport;
use steptime_predict::{Choice, Error};

use self::report::{csv, plot, text};
use super::{Failure, load, pricing};
use crate::cli::{Form, OutputFile, Part, Pricing};
use crate::console::Console;
use crate::{output, progress};

/// `steptime roofline`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime roofline examples/dlrm_default_2048
    steptime roofline examples/resnet50_32 --device a100 --plot roofline.svg")]
pub struct Roofline {
    /// A recording with its execution trace, an execution trace, or the description of a model (.toml); of any other trace from a GPU,
    /// kernels are shown by name
    pub input: PathBuf,
    /// GPU to predict kernel times for [default: measured times, against the recorded GPU]
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Kernel pricing.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Write a plot
    #[arg(long, value_name = "OUT.svg")]
    pub plot: Option<OutputFile>,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
    /// Step and rank.
    #[command(flatten)]
    pub part: Part,
}

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
