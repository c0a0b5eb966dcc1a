//! Bad input and wrong usage: exit codes and messages.

use std::process::{Command, Stdio};

use predicates::prelude::*;
use predicates::str::contains;

use crate::{root, steptime, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";

fn fails(args: &[&str], words: &str) {
    let message = contains(words).and(predicates::str::starts_with("error: "));
    steptime(args).assert().code(1).stdout("").stderr(message);
}

#[test]
fn what_cannot_be_read() {
    fails(&["predict", "no/such/file"], "cannot read no/such/file");
    let folder = tempfile::tempdir().expect("a folder");
    let garbage = folder.path().join("garbage.json");
    std::fs::write(&garbage, "not a trace").expect("written");
    fails(&["predict", text(&garbage)], "is not a JSON trace");
    fails(&["inspect", text(&garbage)], "is not a JSON trace");
    fails(&["inspect", text(folder.path())], "holds no trace");
    let empty = tempfile::tempdir().expect("a folder");
    fails(&["predict", text(empty.path())], "holds no trace");
}

#[test]
fn an_execution_trace_has_no_times() {
    let path = "examples/dlrm_default_2048/et.json.gz";
    fails(&["predict", path], "name a GPU to predict for (--device h200)");
    fails(&["roofline", path], "--device");
    fails(&["validate", path, "--kernels", "h200"], "no GPU times");
    for args in [&["--host", "own"][..], &["--keep-profiler"], &["--step", "7"]] {
        fails(&[&["predict", path, "--device", "a100"], args].concat(), "an execution trace alone");
    }
    fails(&["host", "fit", path, "-o", "unused.toml"], "no GPU times");
    steptime(&["inspect", path]).assert().success();
}

#[test]
fn parts_that_are_not_there() {
    fails(&["predict", EXAMPLE, "--step", "999"], "no step 999 in the trace: it has 30 steps, 5 to 34");
    fails(&["inspect", EXAMPLE, "--step", "999"], "no step 999 in the trace");
    fails(&["predict", EXAMPLE, "--rank", "3"], "no rank 3");
    fails(&["inspect", EXAMPLE, "--rank", "3"], "no rank 3");
}

#[test]
fn profiles_of_another_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("host.toml");
    std::fs::write(&file, "version = 999\n").expect("written");
    fails(&["predict", EXAMPLE, "--host", text(&file)], "version 999");
    fails(&["host", "show", text(&file)], "version 999");
    std::fs::write(&file, "[package]\nname = \"x\"\n").expect("written");
    fails(&["predict", EXAMPLE, "--host", text(&file)], "not a host profile");
    fails(&["predict", EXAMPLE, "--host", "no/such/profile"], "no/such/profile");
}

#[test]
fn device_profiles_of_another_kind() {
    let lone = "examples/dlrm_default_2048/et.json.gz";
    let uses = |device: &str, words: &str| {
        fails(&["predict", lone, "--device", device], words);
        fails(&["validate", EXAMPLE, "--kernels", device], words);
        fails(&["device", "show", device], words);
        fails(&["roofline", EXAMPLE, "--device", device], words);
        fails(&["kernels", "predict", "--device", device], words);
    };
    uses("voodoo2", "the shipped ones are h200, h100, a100");
    uses("h20", "did you mean h200?");
    let folder = tempfile::tempdir().expect("a folder");
    let place = text(folder.path());
    uses(place, "profile.toml");
    let shipped = root().join("profiles/h200");
    let header = std::fs::read_to_string(shipped.join("profile.toml")).expect("the header");
    let models = std::fs::read(shipped.join("models.bin.zst")).expect("the models");
    let write = |header: &str, models: &[u8]| {
        std::fs::write(folder.path().join("profile.toml"), header).expect("written");
        std::fs::write(folder.path().join("models.bin.zst"), models).expect("written");
    };
    write(&header, &models[..models.len() / 2]);
    uses(place, "cut off or damaged");
    write(&header, &[]);
    uses(place, "cut off");
    write(&header.replacen("version = ", "version = 999", 1), &models);
    uses(place, "version 999");
    write(&header.replacen("multiprocessors = ", "multiprocessors = 1", 1), &models);
    uses(place, "or that file was edited");
    write(&format!("colour = \"red\"\n{header}"), &models);
    uses(place, "colour");
    std::fs::remove_file(folder.path().join("models.bin.zst")).expect("removed");
    std::fs::write(folder.path().join("profile.toml"), &header).expect("written");
    uses(place, "models.bin.zst is not beside it");
}

#[test]
fn recordings_that_say_too_little() {
    fails(
        &["validate", "examples/dlrm_default_2048", "--host", "leave-one-out"],
        "at least two architectures",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json.gz");
    std::fs::copy(root().join(EXAMPLE).join("kineto.json.gz"), &trace).expect("a copy");
    fails(&["validate", text(&trace)], "no `step_ms`");
}

#[test]
fn files_that_cannot_be_written() {
    let path = "no/such/folder/file";
    fails(&["predict", EXAMPLE, "--timeline", path], "cannot write no/such/folder/file");
    fails(&["host", "fit", EXAMPLE, "-o", path], "cannot write no/such/folder/file");
    fails(&["roofline", EXAMPLE, "--plot", path], "cannot write no/such/folder/file");
}

#[test]
fn wrong_usage() {
    for args in [
        &[][..],
        &["foretell"],
        &["predict"],
        &["predict", EXAMPLE, "--method", "guess"],
        &["predict", EXAMPLE, "--kernels", "roofline"],
        &["predict", EXAMPLE, "--host", "leave-one-out"],
        &["validate", EXAMPLE, "--lone"],
        &["validate", EXAMPLE, "--lone", "--kernels", "h200", "--host", "own"],
        &["predict", EXAMPLE, "--method", "paper", "--timeline", "out.json"],
        &["predict", EXAMPLE, "--host", "default", "--keep-profiler"],
        &["predict", EXAMPLE, "--step", "many"],
        &["host", "fit", EXAMPLE],
        &["predict", EXAMPLE, "--models", "guess"],
        &["device"],
        &["device", "fit", "sweep.parquet"],
        &["device", "show"],
        &["kernels", "predict"],
        &["roofline"],
        &["validate"],
    ] {
        steptime(args).assert().code(2).stdout("");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("steptime"))
        .args(["inspect", EXAMPLE, "--json"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
