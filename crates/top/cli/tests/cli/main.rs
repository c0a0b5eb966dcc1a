//! The command line, from the outside, over `examples/`.

mod captured;
mod choose;
mod compared;
mod compiled;
mod cpu;
mod csv;
mod described_jobs;
mod device;
mod difference;
mod events;
mod execution_traces;
mod failures;
mod fit;
mod foreign;
mod gather_plan;
mod graph;
mod held_out;
mod host;
mod hostile;
mod independence;
mod ingest;
mod jobs;
mod json;
mod kernels;
mod library;
mod limits;
mod lone;
mod memory;
mod models;
mod named;
#[cfg(target_os = "linux")]
mod opening;
mod outputs;
mod pace;
mod priced;
mod ranks;
mod repairs;
mod replay;
mod roofline;
mod scores;
mod shell;
mod sweep;
mod terminal;
mod timeline;
mod traced;
mod unpriced;
mod view;
mod what_if;
mod width;
mod world;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// The folder that holds `examples/`.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The program, run in the folder that holds `examples/`.
fn steptime(args: &[&str]) -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("steptime");
    command.current_dir(root()).env_remove("COLUMNS").args(args);
    command
}

/// The output of a successful run, without messages on stderr.
fn stdout(args: &[&str]) -> String {
    let output = steptime(args).assert().success().stderr("").get_output().stdout.clone();
    String::from_utf8(output).expect("UTF-8")
}

/// The words of a report, independent of line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The output with `--json`.
fn json(args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    serde_json::from_str(&stdout(&all)).expect("JSON")
}

/// The message of a failed run.
fn failure(args: &[&str]) -> String {
    let output = steptime(args).assert().code(1).stdout("").get_output().stderr.clone();
    String::from_utf8(output).expect("UTF-8")
}

/// A copy of an example that a test may change.
fn copy_of(example: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for entry in std::fs::read_dir(root().join("examples").join(example)).expect("the example") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("a copy");
    }
    folder
}

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
