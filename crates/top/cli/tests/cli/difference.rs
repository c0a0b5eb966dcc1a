//! Differences of two recordings.

use serde_json::Value;

use crate::{json, stdout, steptime};

const A: &str = "examples/dlrm_default_2048";
const B: &str = "examples/dlrm_default_fused_2048";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn each_is_as_if_it_were_asked_alone() {
    let answer = json(&["compare", A, B]);
    assert_eq!((&answer["schema"], &answer["command"]), (&1.into(), &"compare".into()));
    for (side, input) in [("a", A), ("b", B)] {
        let alone = json(&["predict", input]);
        for key in ["step_ms", "interval_ms", "active_ms", "idle_ms", "peak_mb", "device"] {
            assert_eq!(answer[side][key], alone[key], "{key} of {input}");
        }
    }
    let longer = number(&answer["b"]["step_ms"]) / number(&answer["a"]["step_ms"]) - 1.0;
    assert!((number(&answer["longer"]) - longer).abs() < 1e-6);
}

#[test]
fn ops_and_kernels_add_up_to_each_step() {
    let answer = json(&["compare", A, B]);
    for (side, input) in [A, B].into_iter().enumerate() {
        let alone = json(&["predict", input]);
        let sum = |rows: &Value, key: &str| -> f64 {
            rows.as_array().expect("rows").iter().map(|row| number(&row[key][side])).sum()
        };
        let whole = |key: &str| -> f64 {
            alone[key].as_array().expect("rows").iter().map(|row| number(&row["device_ms"])).sum()
        };
        assert!((sum(&answer["ops"], "device_ms") - whole("ops")).abs() < 1e-3);
        assert!((sum(&answer["kernels"], "device_ms") - whole("kernels_by_name")).abs() < 1e-3);
    }
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let answer = json(&["compare", A, A, "--fail-above", "0%"]);
    assert_eq!(number(&answer["longer"]), 0.0);
    for row in answer["ops"].as_array().expect("ops") {
        assert_eq!(row["nth"][0], row["nth"][1], "{row}");
        assert_eq!(row["critical_ms"][0], row["critical_ms"][1], "{row}");
    }
}

#[test]
fn kernels_of_one_alone_are_seen() {
    let answer = json(&["compare", A, B]);
    let kernels = answer["kernels"].as_array().expect("kernels");
    assert!(kernels.iter().any(|row| row["count"][0] == 0 && row["count"][1] != 0));
    let text = stdout(&["compare", A, B]);
    assert!(text.contains("b takes 19.9 % shorter than a"), "{text}");
}

#[test]
fn csv_has_a_row_for_each() {
    let text = stdout(&["compare", A, B, "--csv"]);
    for table in ["step", "idle", "op", "kernel"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{table},"))), "{table}: {text}");
    }
}

#[test]
fn a_second_that_takes_too_much_longer_fails() {
    let check = |a: &str, b: &str, most: &str| steptime(&["compare", a, b, "--fail-above", most]).assert();
    check(A, B, "5%").success();
    let failed = check(B, A, "5%").code(1);
    let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(said.contains("% longer than"), "{said}");
    assert!(!failed.get_output().stdout.is_empty());
    check(B, A, "30").success();
    check(A, B, "-3%").code(2);
}
