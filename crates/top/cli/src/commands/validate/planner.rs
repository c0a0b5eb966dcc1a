//! `steptime validate --planner`.

mod report;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use steptime_answers::{PlannerValidationReport, job::PlannerRow};
use steptime_eager::Model;
use steptime_predict::shard::{self, RecordedJob};

use super::{Planner, Validate};
use crate::cli::HostChoice;
use crate::commands::pricing::QueryOptions;
use crate::commands::usage;
use crate::commands::{Failure, load};
use crate::console::Console;
use crate::progress;

pub fn run(args: &Validate, jobs: &[PathBuf], console: &Console<'_>) -> Result<(), Failure> {
    let Some(Planner::Torchrec) = args.planner else { return Ok(()) };
    if jobs.is_empty() {
        return Err(
            "--planner compares jobs: give folders that hold a folder for each rank, as rank0, rank1, ..."
                .into(),
        );
    }
    if args.kernels == "measured" || args.lone {
        let words = "--planner is compared with a prediction from a description: give the GPU with --kernels NAME, and leave out --lone";
        return Err(usage("validate", words).into());
    }
    let host = match &args.host {
        HostChoice::Own => None,
        other => Some(other),
    };
    let ask = QueryOptions::read(Some(&args.kernels), &args.pricing, host)?;
    let row = |path: &PathBuf| -> Result<PlannerRow, Failure> {
        let job = RecordedJob::read(path)?;
        let (file, model) = description(&args.model, &job)?;
        let placement = shard::place(job.adjust_model(&model)?, &file, &ask)?;
        Ok(PlannerRow::new(&job, &placement))
    };
    let rows: Result<Vec<PlannerRow>, Failure> =
        progress::spin("simulating", || jobs.par_iter().map(row).collect());
    let answer = PlannerValidationReport::from_rows(rows?);
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Finds the description of a job's model: the given file, or the one of its name in a given folder.
fn description(given: &[PathBuf], job: &RecordedJob) -> Result<(PathBuf, Model), Failure> {
    let named = |folder: &Path| job.model.as_ref().map(|name| folder.join(format!("{name}.toml")));
    let file = |path: &PathBuf| match path.is_dir() {
        true => named(path).filter(|file| file.is_file()),
        false => Some(path.clone()),
    };
    let found = given.iter().find_map(file).ok_or_else(|| {
        let folders: Vec<String> = given.iter().map(|path| path.display().to_string()).collect();
        format!(
            "{}: no {}.toml in {}: describe its model there, docs/src/models.md has the keys",
            job.path.display(),
            job.model.as_deref().unwrap_or("MODEL"),
            folders.join(", ")
        )
    })?;
    Ok((found.clone(), load::model(&found)?))
}
