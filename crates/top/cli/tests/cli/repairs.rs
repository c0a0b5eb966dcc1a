//! Damaged recordings: repaired, with a warning.

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
    let args = ["predict", text(&path), "--device", "h200"];
    let answer = json(&args);
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("1 repair while reading: the file ends in the middle"), "{warnings}");
    // Half a step gives no estimate.
    assert_eq!(
        (&answer["doubts"][0]["kind"], &answer["doubts"][0]["no_estimate"]),
        (&"cut".into(), &true.into())
    );
    let shown = stdout(&args);
    assert!(shown.lines().nth(1).is_some_and(|line| line.starts_with("step: no estimate")), "{shown}");
}

#[test]
fn an_execution_trace_that_lacks_its_last_brackets_is_whole() {
    let folder = copy_of("dlrm_default_2048");
    let [all, path] = ["all.et.json", "cut.et.json"].map(|name| folder.path().join(name));
    stdout(&["whatif", text(folder.path()), "--graph", text(&all)]);
    let whole = std::fs::read_to_string(&all).expect("the trace");
    std::fs::write(&path, &whole[..whole.rfind(']').expect("the end of a list")]).expect("written");
    let step = |path: &std::path::Path| json(&["predict", text(path), "--device", "h200"]);
    let (cut, all) = (step(&path), step(&all));
    assert!(cut["warnings"].to_string().contains("1 repair while reading"), "{}", cut["warnings"]);
    let others = |answer: &serde_json::Value| -> Vec<serde_json::Value> {
        let doubts = answer["doubts"].as_array().expect("doubts").iter();
        doubts.filter(|doubt| doubt["kind"] != "repairs").cloned().collect()
    };
    assert_eq!((others(&cut), &cut["step_ms"]), (others(&all), &all["step_ms"]));
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
