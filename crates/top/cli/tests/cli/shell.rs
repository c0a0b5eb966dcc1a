//! Completions and manual pages.

use crate::{stdout, steptime};

#[test]
fn every_shell_gets_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("roofline") && script.contains("keep-profiler"), "{shell}");
    }
}

#[test]
fn every_command_gets_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    steptime(&["man", pages.to_str().unwrap()]).assert().success();
    for (page, words) in
        [("steptime.1", "predict"), ("steptime-host-fit.1", "others"), ("steptime-predict.1", "timeline")]
    {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(words), "{page}: {text}");
    }
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("man1");
    let message = crate::failure(&["man", below.to_str().unwrap()]);
    assert!(message.contains(below.to_str().unwrap()), "{message}");
}

#[test]
fn commands_of_other_programs_are_passed_on() {
    let none = tempfile::tempdir().unwrap();
    let alone = none.path().join(format!("steptime{}", std::env::consts::EXE_SUFFIX));
    std::fs::copy(assert_cmd::cargo::cargo_bin!("steptime"), &alone).unwrap();
    let message = |args: &[&str]| {
        let output = assert_cmd::Command::new(&alone)
            .args(args)
            .assert()
            .code(1)
            .stdout("")
            .get_output()
            .stderr
            .clone();
        String::from_utf8(output).unwrap()
    };
    assert!(message(&["bench", "cpu", "--json"]).contains("-p steptime-bench-cli -- cpu --json"));
    assert!(
        message(&["train", "model.toml", "--help"]).contains("-p steptime-train-cli -- model.toml --help")
    );
    assert!(message(&["gemm", "plan", "64x64x64"]).contains("-p steptime-bench-cli -- gemm 64x64x64"));
}

/// The other program prints its error; nothing is added, and its exit code is kept.
#[cfg(unix)]
#[test]
fn a_failed_program_has_the_last_word() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("steptime");
    // Copied by another process: a program that this one has open for writing cannot be started while another test forks.
    let program = assert_cmd::cargo::cargo_bin!("steptime");
    assert_cmd::Command::new("cp").arg(program).arg(&here).assert().success();
    let other = folder.path().join("steptime-train");
    let script = "printf '#!/bin/sh\\necho \"own error: $1\" >&2\\nexit 3\\n' > \"$0\" && chmod 755 \"$0\"";
    assert_cmd::Command::new("sh").arg("-c").arg(script).arg(&other).assert().success();
    let run = assert_cmd::Command::new(&here).args(["train", "model.toml"]).assert();
    run.code(3).stdout("").stderr("own error: model.toml\n");
}
