//! The step after a change, as a file.

use serde_json::Value;

use crate::{failure, json, stdout, steptime, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";

#[test]
fn the_name_says_the_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let begins = [
        ("a.dot", "digraph \""),
        ("a.json", "{\"format\": \"steptime-step\""),
        ("a.et.json", "{\"schema\": \"1.1.1-"),
    ];
    for (name, begin) in begins {
        let file = folder.path().join(name);
        steptime(&["whatif", EXAMPLE, "--fuse", "embedding-bags", "--graph", text(&file)]).assert().success();
        let written = std::fs::read_to_string(&file).expect("the file");
        assert!(written.starts_with(begin), "{name}: {}", &written[..40]);
    }
    let scripted = std::fs::read(folder.path().join("a.json")).expect("the file");
    let step: Value = serde_json::from_slice(&scripted).expect("JSON");
    let inserted =
        step["ops"].as_array().expect("ops").iter().filter(|op| op["origin"]["kind"] == "inserted");
    assert!(inserted.clone().count() > 0);
    assert!(inserted.into_iter().all(|op| op["origin"]["rule"] == "fuse-embedding-bags"));
}

#[test]
fn other_names_are_refused_before_anything_is_read() {
    for name in ["a.svg", "dot", "a.json.txt"] {
        let error = failure(&["whatif", "no/such/input", "--batch", "4", "--graph", name]);
        assert!(error.contains(".dot") && error.contains(".json") && error.contains(".et.json"), "{error}");
        assert!(!std::path::Path::new(name).exists());
    }
    let error = failure(&["whatif", EXAMPLE, "--graph", "a.json", "--timeline", "a.json"]);
    assert!(error.contains("the same file"), "{error}");
    let error = failure(&["whatif", EXAMPLE, "--graph", "no/such/folder/a.dot"]);
    assert!(error.contains("cannot write no/such/folder/a.dot"), "{error}");
}

#[test]
fn a_step_that_did_not_change_is_written_too_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("as-it-is.et.json");
    let trace = format!("{EXAMPLE}/et.json.gz");
    assert!(stdout(&["whatif", EXAMPLE, "--graph", text(&file)]).contains("1.00 times as fast"));
    let [recorded, written] =
        [&*trace, text(&file)].map(|input| json(&["predict", input, "--device", "h200"]));
    for key in ["step_ms", "interval_ms", "active_ms", "idle_ms", "peak_mb"] {
        assert_eq!(recorded[key], written[key], "{key}");
    }
    let change =
        |input| json(&["whatif", input, "--device", "h200", "--batch", "8192", "--recorded-batch", "2048"]);
    assert_eq!(change(&trace)["after"], change(text(&file))["after"]);
}
