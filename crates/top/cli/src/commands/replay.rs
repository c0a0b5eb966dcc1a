//! `steptime validate --replay-only`: replay of recordings without a measured step.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use steptime_answers::{ReplayReport, replay::ReplayRow};
use steptime_predict::{Choice, Step};
use steptime_trace::Want;

use super::{Failure, load};
use crate::cli::Form;
use crate::console::Console;
use crate::progress::Progress;
use crate::report;

/// Replays all recordings; one that cannot be read is a row with the reason.
pub fn run(paths: &[PathBuf], form: Form, console: &Console<'_>) -> Result<(), Failure> {
    let paths = load::expand(paths)?;
    let progress = Progress::recordings();
    let done = AtomicU64::new(0);
    let counted = |path: &PathBuf| {
        let row = row(path);
        progress.report(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len() as u64);
        row
    };
    let rows: Vec<ReplayRow> = paths.par_iter().map(counted).collect();
    let answer = ReplayReport::new(rows);
    Ok(console.print_answer(form, &answer, report::replay::text, report::replay::csv)?)
}

fn row(path: &Path) -> ReplayRow {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
    let read = |step: Step| {
        // A CPU step can be replayed, that of an unsupported accelerator cannot.
        if !step.accelerators.is_empty() {
            step.on_a_device()?;
        }
        Ok(step)
    };
    match load::rank(path, &Choice::default(), Want::TIMING).and_then(read) {
        Ok(step) => ReplayRow::new(name, &step),
        Err(why) => ReplayRow::failed(name, why.to_string()),
    }
}
