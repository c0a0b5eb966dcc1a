//! Recordings made on a CPU, and folders of recordings that are not ranks.

use std::path::Path;

use serde_json::Value;

use crate::{failure, json, root, stdout, text};

/// Trace of a recording made on a CPU: times of ops, and no device.
const TIMES: &str = r#"{"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 1, "ts": 0, "dur": 900},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 800},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 900, "dur": 900},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 910, "dur": 800}]}"#;

/// Writes a recording made on a CPU, with its execution trace or without.
fn record(folder: &Path, execution: bool) {
    std::fs::create_dir_all(folder).expect("a folder");
    for name in ["kineto.json", "kineto_et.json"] {
        std::fs::write(folder.join(name), TIMES).expect("times");
    }
    std::fs::write(folder.join("meta.json"), r#"{"model": "dlrm", "batch": 64, "step_ms": 0.9}"#)
        .expect("meta.json");
    if execution {
        let from = root().join("crates/model/aten/tests/data/dlrm_cpu.json.gz");
        std::fs::copy(from, folder.join("et.json.gz")).expect("a copy");
    }
}

/// An answer without the input's own path and name.
fn answer(path: &Path) -> Value {
    let mut answer = json(&["predict", text(path), "--device", "h200"]);
    for key in ["input", "name"] {
        answer[key] = Value::Null;
    }
    answer
}

#[test]
fn a_folder_means_its_execution_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path(), true);
    let whole = answer(folder.path());
    assert_eq!(whole, answer(&folder.path().join("et.json.gz")));
    assert_eq!(whole["host"], "default");
    assert!(whole["warnings"].to_string().contains("recorded on a CPU"), "{}", whole["warnings"]);
    // The execution trace alone: only the facts of meta.json are missing.
    let mut alone = answer(&root().join("crates/model/aten/tests/data/dlrm_cpu.json.gz"));
    for key in ["batch", "samples_per_s"] {
        alone[key] = whole[key].clone();
    }
    assert_eq!(whole, alone);
}

#[test]
fn without_a_device_nothing_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path(), true);
    let path = text(folder.path());
    let profile = folder.path().join("host.toml");
    for arguments in [
        &["predict", path][..],
        &["roofline", path],
        &["validate", path],
        &["host", "fit", path, "-o", text(&profile)],
    ] {
        let error = failure(arguments);
        assert!(error.contains("--device h200") && error.contains("on a CPU"), "{arguments:?}: {error}");
    }
    assert!(!profile.exists());
}

#[test]
fn recordings_of_different_models_are_not_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["dlrm_2048", "mlp_64", "gpt"] {
        record(&folder.path().join(name), true);
    }
    for command in [&["predict", "--device", "h200"][..], &["roofline", "--device", "h200"], &["inspect"]] {
        let error = failure(&[&command[..1], &[text(folder.path())], &command[1..]].concat());
        assert!(error.contains("dlrm_2048, gpt, mlp_64") && error.contains("name one"), "{error}");
    }
    let one = folder.path().join("gpt");
    assert!(json(&["predict", text(&one), "--device", "h200"])["step_ms"].is_number());
}

#[test]
fn what_is_assumed_is_said_first_and_in_every_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path(), true);
    let path = text(folder.path());
    let questions = [
        &["predict", path][..],
        &["whatif", path, "--host-speed", "0.9"],
        &["explain", path],
        &["choose", path],
    ];
    for question in questions {
        let answer = json(&[question, &["--device", "h200"]].concat());
        let doubts = answer["doubts"].as_array().expect("doubts");
        let kinds: Vec<&str> = doubts.iter().filter_map(|doubt| doubt["kind"].as_str()).collect();
        for kind in ["host", "kernels", "interval"] {
            assert!(kinds.contains(&kind), "{question:?}: {kind} among {kinds:?}");
        }
        let factors: Vec<f64> = doubts.iter().map(|doubt| doubt["factor"].as_f64().unwrap_or(1.0)).collect();
        assert!(factors.is_sorted_by(|a, b| a >= b), "{question:?}: {factors:?}");
        assert!((factors[kinds.iter().position(|kind| *kind == "host").unwrap()] - 1.97).abs() < 0.01);
        let said = stdout(&[question, &["--device", "h200"]].concat());
        let at = said.lines().position(|line| line.starts_with("! ")).expect("a doubt");
        assert!(at <= 4, "{question:?}: {said}");
    }
    let timed = json(&["predict", "examples/dlrm_default_2048"]);
    assert_eq!(timed["doubts"], Value::Array(Vec::new()), "what was timed there is its own");
}
