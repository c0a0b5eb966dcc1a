//! A process that is killed while it writes checkpoints.

use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use steptime_train::checkpoint::{Checkpoint, Options, Store, list, newest};
use tempfile::tempdir;

use crate::sample::{MODEL, Sample, state};

const FOLDER: &str = "STEPTIME_TEST_CHECKPOINTS";

/// The child: writes checkpoints of increasing steps until it is killed, and prints each step that is whole.
#[test]
#[ignore = "the child process of another test"]
fn writes_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let options = Options { keep: NonZero::new(2).unwrap(), shard_bytes: 40_000 };
    let store = Store::open(&folder, options).unwrap();
    let first = list(Path::new(&folder)).unwrap().last().map_or(1, |(step, _)| step + 1);
    for step in first.. {
        store.write(&state(step), MODEL, &Sample::new(step).entries()).unwrap().removed.unwrap();
        println!("\nwhole {step}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_checkpoint() {
    let folder = tempdir().unwrap();
    let (mut last, mut within) = (0, 0);
    for round in 0..24u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::writes_until_killed", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut steps = lines.filter_map(|line| line.ok()?.strip_prefix("whole ")?.parse::<u64>().ok());
        let whole = steps.next().expect("the child writes a checkpoint");
        assert!(whole > last, "round {round}: step {whole} after {last}");
        std::thread::sleep(Duration::from_micros(round * 1700 % 20_011));
        child.kill().unwrap();
        child.wait().unwrap();
        last = steps.last().unwrap_or(whole);
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        within += names.filter(|name| name.to_string_lossy().ends_with(".partial")).count();
        let checkpoint = newest(folder.path()).unwrap().expect("a checkpoint");
        let step = checkpoint.state().step;
        // The next one may have become whole just before the kill.
        assert!(step == last || step == last + 1, "round {round}: newest is {step}, last whole was {last}");
        last = step;
        for (step, path) in list(folder.path()).unwrap() {
            Sample::new(step).check(&Checkpoint::open(&path).unwrap());
        }
    }
    assert!(within > 0, "no kill was within a write");
}
