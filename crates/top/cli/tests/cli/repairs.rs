//! Damaged recordings: repaired, and said so.

use crate::{copy_of, failure, json, stdout, text};

#[test]
fn a_truncated_trace_still_predicts() {
    let folder = copy_of("dlrm_default_2048");
    let path = folder.path().join("kineto.json.gz");
    let bytes = std::fs::read(&path).expect("the trace");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let args = ["predict", text(folder.path())];
    let answer = json(&args);
    assert!(answer["step_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("while reading"), "{warnings}");
    assert!(stdout(&args).contains("! "));
    let notes = json(&["inspect", text(folder.path())])["notes"].to_string();
    assert!(notes.contains("\"repaired\":true"), "{notes}");
}

#[test]
fn an_execution_trace_cut_in_the_middle_is_named_where_it_is_all_there_is() {
    let folder = copy_of("dlrm_default_2048");
    let path = folder.path().join("et.json.gz");
    let bytes = std::fs::read(&path).expect("the trace");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
    let warnings = json(&["predict", text(&path), "--device", "h200"])["warnings"].to_string();
    assert!(warnings.contains("1 repair while reading: the file ends in the middle"), "{warnings}");
}

#[test]
fn a_trace_cut_so_early_that_nothing_is_left_says_so_first() {
    let folder = copy_of("dlrm_default_2048");
    let path = folder.path().join("kineto.json.gz");
    let bytes = std::fs::read(&path).expect("the trace");
    std::fs::write(&path, &bytes[..1000]).expect("written");
    for command in ["predict", "roofline"] {
        let said = failure(&[command, text(&path)]);
        assert!(said.starts_with("error: 1 repair while reading: the file ends in the middle"), "{said}");
        assert!(said.contains("no GPU activity in the trace"), "{said}");
    }
}
