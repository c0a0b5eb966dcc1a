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
