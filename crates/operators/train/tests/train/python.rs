//! Python programs beside the tests: run by `STEPTIME_PYTHON` or `python3`, skipped where packages are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program of this folder with arguments; `None`, and the test is skipped, where Python lacks a package.
pub fn run(program: &str, arguments: &[&Path], packages: &str) -> Option<String> {
    let python = std::env::var_os("STEPTIME_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", &format!("import {packages}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        steptime_skips::skip(&format!("no {packages} for Python"));
        return None;
    }
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/train/python").join(program);
    let output = Command::new(&python).arg(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}
