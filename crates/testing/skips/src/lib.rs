//! Skipped tests report that they are skipped, and are counted.
//!
//! A test that finds no GPU returns, and the test runner calls it passed. [`skip`] prints a line that the runner does
//! not swallow, and adds one to the [`ledger`], which `.ci/run` counts.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of tests of this program that were skipped.
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Reports that the running test is skipped, and the reason, for example `no GPU`.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let count = 1 + SKIPPED.fetch_add(1, Ordering::Relaxed);
    // Not with `eprintln`, which the test runner captures if the test passes. In one write, because others write
    // there too. A failed report does not fail the test.
    let line = format!("skipped {test}: {reason} ({count} in this run)\n");
    let _ = io::stderr().write_all(line.as_bytes());
    let _ = ledger().map(|path| note(&path, reason, test));
}

fn note(ledger: &Path, reason: &str, test: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(ledger)?;
    file.write_all(format!("{reason}\t{test}\n").as_bytes())
}

/// The file with a line for each test that was skipped, reason and name: `skipped-tests` in the folder of the build
/// profile, as `target/debug`. Runs add to it; `.ci/run` empties it before.
#[must_use]
pub fn ledger() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let built = program.ancestors().find(|folder| folder.ends_with("deps"))?.parent()?;
    Some(built.join("skipped-tests"))
}

/// A file or folder of `../shared`, beside the repository, for a test of the crate in the folder `manifest`
/// (`env!("CARGO_MANIFEST_DIR")`); where it is missing the test is skipped.
#[must_use]
pub fn shared(manifest: &str, path: &str) -> Option<PathBuf> {
    let place = Path::new(manifest).join("../../../../shared").join(path);
    if place.exists() {
        return Some(place);
    }
    skip("no ../shared");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skip_is_a_line() {
        let path = std::env::temp_dir().join(format!("skipped-tests-{}", std::process::id()));
        for test in ["one", "two"] {
            note(&path, "no GPU", test).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no GPU\tone\nno GPU\ttwo\n");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_ledger_lies_beside_what_was_built() {
        assert!(ledger().unwrap().parent().unwrap().join("deps").is_dir());
    }
}
