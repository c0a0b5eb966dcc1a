//! `steptime validate`.

use steptime::{Subject, validate};

use super::{Failure, load, source};
use crate::cli::Validate;
use crate::report::{self, json_validate};
use crate::{output, progress};

/// Runs it.
pub fn run(args: &Validate) -> Result<(), Failure> {
    let mode = source::mode(&args.host)?;
    let mut repairs = Vec::new();
    let mut subjects: Vec<Subject> = Vec::new();
    for mut loaded in load::subjects(&args.recordings)? {
        source::set_process(&mut loaded.subject, args.process);
        repairs.extend(loaded.repairs.map(|words| format!("{}: {words}", loaded.subject.name)));
        subjects.push(loaded.subject);
    }
    let validation = progress::spin("simulating", || validate(&subjects, &mode))?;
    let answer = json_validate::Answer::new(args.host.label(), args.kernels.label(), &validation, repairs);
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&report::validate::text(&answer))?;
    }
    Ok(())
}
