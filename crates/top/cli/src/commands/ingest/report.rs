//! Results of an ingest into a lake.

use serde_json::json;
use steptime_answers::{
    IngestReport,
    ingest::{IngestedRun, SkippedFile},
};

use crate::output::name;
use crate::report::csv::Table;
use crate::report::format::{counted, grouped};
use crate::report::table::Columns;
use crate::report::width::{prose, wrapped};

/// Number of left-out files to show.
const TOLD: usize = 5;

/// Returns the answer as text.
pub fn text(answer: &IngestReport) -> String {
    let sum = |of: fn(&IngestedRun) -> usize| answer.runs.iter().map(of).sum::<usize>();
    let mut head = format!("{}: {} ingested", name(&answer.lake), counted(sum(|run| run.ingested), "rank"));
    let bytes: u64 = answer.runs.iter().map(|run| run.bytes).sum();
    if bytes > 0 {
        head += &format!(" from {:.1} MB", bytes as f64 / 1e6);
    }
    match sum(|run| run.kept) {
        0 => {}
        kept => head += &format!(", {kept} there from before"),
    }
    let mut columns = Columns::new(&[
        "~run",
        ">ranks",
        ">steps",
        ">ops",
        ">kernels",
        "?>copies",
        ">collectives",
        "?>gaps",
        "?>repairs",
    ]);
    for run in &answer.runs {
        let counts = [run.steps, run.ops, run.kernels, run.copies, run.collectives, run.gaps, run.repairs];
        let ranks = (run.ingested + run.kept) as u64;
        let cells = std::iter::once(ranks).chain(counts).map(grouped);
        columns.row(std::iter::once(run.run.clone()).chain(cells));
    }
    let mut text = format!("{}\n\n{}", wrapped(&head, prose(), 2), columns.text());
    text += &left_out("skipped", &answer.skipped);
    text += &left_out("no Kineto trace, and ignored", &answer.ignored);
    text
}

/// Returns the table of ingested runs, and of left-out files.
pub fn csv(answer: &IngestReport) -> Table {
    let columns =
        "run outcome file rank reason ranks bytes steps ops kernels copies collectives gaps repairs";
    let mut table = Table::new(columns);
    for run in &answer.runs {
        table.row_with(&json!({"outcome": "run", "ranks": run.ingested + run.kept}), run);
    }
    for (outcome, files) in [("skipped", &answer.skipped), ("ignored", &answer.ignored)] {
        for file in files {
            table.row_with(&json!({"outcome": outcome}), file);
        }
    }
    table
}

/// Returns the number of files that did not become ranks, and the names of the first.
fn left_out(what: &str, files: &[SkippedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{} {what}:\n", counted(files.len(), "file"));
    for file in files.iter().take(TOLD) {
        // A reason that begins with the file's name does not repeat it.
        let reason = file.reason.strip_prefix(&format!("{}: ", file.file)).unwrap_or(&file.reason);
        let line = match reason.contains(&file.file) {
            true => name(reason),
            false => name(&format!("{}: {reason}", file.file)),
        };
        text += &format!("  {}\n", wrapped(&line, prose().saturating_sub(2), 4));
    }
    if files.len() > TOLD {
        text += &format!("  and {} more, which --json and the lake's _ingest/ have\n", files.len() - TOLD);
    }
    text
}
