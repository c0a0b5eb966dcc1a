//! `steptime validate`.

use steptime::trace::Want;
use steptime::{Kernels, Subject, validate};

use super::pricing::Priced;
use super::{Failure, load, source};
use crate::cli::Validate;
use crate::report::{self, json_validate};
use crate::{output, progress};

/// Runs it.
pub fn run(args: &Validate) -> Result<(), Failure> {
    let mode = source::mode(&args.host)?;
    let mut repairs = Vec::new();
    let mut subjects: Vec<Subject> = Vec::new();
    let priced = match args.kernels.as_str() {
        "measured" => None,
        name => Some(Priced::find(name, &args.pricing)?),
    };
    let want = Want { execution: priced.is_some(), ..Want::TIMING };
    for mut loaded in load::subjects(&args.recordings, want)? {
        source::set_process(&mut loaded.subject, args.process);
        repairs.extend(loaded.repairs.map(|words| format!("{}: {words}", loaded.subject.name)));
        subjects.push(loaded.subject);
    }
    let kernels = priced.as_ref().map_or(Kernels::Measured, Priced::kernels);
    let validation = progress::spin("simulating", || validate(&subjects, &mode, &kernels))?;
    let answer = json_validate::Answer::new(args.host.label(), args.kernels.clone(), &validation, repairs);
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&report::validate::text(&answer))?;
    }
    Ok(())
}
