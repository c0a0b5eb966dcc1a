//! Answers as JSON.

use serde_json::Value;

use crate::{json, stdout};

const EXAMPLE: &str = "examples/dlrm_default_2048";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn has(value: &Value, expected: &[&str]) {
    for key in expected {
        assert!(value.get(key).is_some(), "no `{key}` among {:?}", keys(value));
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn predict_has_its_keys() {
    let answer = json(&["predict", EXAMPLE]);
    has(
        &answer,
        &[
            "schema",
            "command",
            "input",
            "name",
            "rank",
            "device",
            "method",
            "host",
            "kernels",
            "step_ms",
            "interval_ms",
            "interval_level",
            "doubts",
            "batch",
            "samples_per_s",
            "active_ms",
            "utilisation",
            "idle_ms",
            "peak_mb",
            "phases",
            "annotations",
            "ops",
            "kernels_by_name",
            "critical_path",
            "coverage",
            "steps",
            "warnings",
        ],
    );
    assert_eq!(answer["schema"], 1);
    assert_eq!(answer["command"], "predict");
    assert_eq!(answer["kernels"], "measured");
    has(&answer["phases"][0], &["name", "host_ms", "device_ms"]);
    has(&answer["ops"][0], &["name", "count", "host_ms", "device_ms", "critical_ms", "slack_ms"]);
    has(&answer["kernels_by_name"][0], &["name", "count", "device_ms"]);
    has(&answer["critical_path"][0], &["place", "what", "phase", "ms"]);
    has(&answer["coverage"], &["launches", "launches_in_op", "activities", "activities_linked", "priced"]);
    has(&answer["steps"], &["source", "count"]);
}

#[test]
fn the_parts_of_a_prediction_add_up() {
    let answer = json(&["predict", EXAMPLE]);
    let step = number(&answer["step_ms"]);
    let idle: f64 = answer["idle_ms"].as_object().expect("causes").values().map(number).sum();
    assert!((number(&answer["active_ms"]) + idle - step).abs() < 1e-3 * step);
    let path: f64 =
        answer["critical_path"].as_array().expect("a path").iter().map(|p| number(&p["ms"])).sum();
    assert!((path - step).abs() < 1e-3 * step);
    assert!(number(&answer["interval_ms"][0]) < step && step < number(&answer["interval_ms"][1]));
    let rate = number(&answer["batch"]) * 1000.0 / step;
    assert!((number(&answer["samples_per_s"]) / rate - 1.0).abs() < 1e-9);
}

#[test]
fn a_baseline_says_only_what_it_knows() {
    let answer = json(&["predict", EXAMPLE, "--method", "kernel-sum"]);
    has(&answer, &["step_ms", "interval_ms", "coverage", "steps", "warnings"]);
    for key in ["active_ms", "idle_ms", "ops", "critical_path", "phases"] {
        assert!(answer.get(key).is_none(), "{key}");
    }
}

#[test]
fn a_profile_prices_every_gap_without_the_recording() {
    let answer = json(&["predict", EXAMPLE, "--host", "default"]);
    assert_eq!(answer["host"], "default");
    assert_eq!(answer["coverage"]["priced"]["own"], 0);
}

#[test]
fn validate_has_its_keys() {
    let answer = json(&["validate", "examples"]);
    assert_eq!(
        (&answer["schema"], &answer["command"], &answer["host"]),
        (&1.into(), &"validate".into(), &"own".into())
    );
    let names: Vec<&Value> =
        answer["rows"].as_array().expect("rows").iter().map(|row| &row["name"]).collect();
    assert_eq!(
        names,
        ["dlrm_ddp_2048", "dlrm_default_2048", "dlrm_default_fused_2048", "dlrm_mlperf_2048", "resnet50_32"]
    );
    for row in answer["rows"].as_array().expect("rows") {
        has(
            row,
            &[
                "name",
                "measured_ms",
                "predicted_ms",
                "error",
                "interval_ms",
                "inside",
                "paper_ms",
                "kernel_sum_ms",
                "active_measured_ms",
                "active_predicted_ms",
                "profiled_ms",
                "replayed_ms",
                "replay_error",
                "idle_share_profiled",
                "idle_share_replayed",
                "host_slowness",
                "architecture",
                "in_sample",
                "paper_published_ms",
            ],
        );
        let error = number(&row["predicted_ms"]) / number(&row["measured_ms"]) - 1.0;
        assert!((number(&row["error"]) - error).abs() < 1e-12);
    }
    for method in ["simulate", "paper", "paper_published", "kernel_sum", "active", "replay"] {
        has(&answer["summary"][method], &["gmae", "mean", "p90", "max"]);
    }
    has(&answer["summary"]["interval"], &["level", "inside"]);
}

#[test]
fn leave_one_out_prices_by_other_models() {
    let answer = json(&["validate", "examples", "--host", "leave-one-out"]);
    assert_eq!(answer["host"], "leave-one-out");
    assert!(answer["rows"].as_array().expect("rows").iter().all(|row| row["host_slowness"].is_number()));
}

#[test]
fn inspect_has_everything() {
    let answer = json(&["inspect", EXAMPLE]);
    has(
        &answer,
        &[
            "schema",
            "command",
            "device",
            "steps",
            "period_ms",
            "active_ms",
            "threads",
            "streams",
            "ops",
            "kernels",
            "overheads",
            "coverage",
            "execution",
            "notes",
            "ranks",
            "warnings",
        ],
    );
    let kinds: Vec<&str> =
        answer["overheads"].as_array().expect("rows").iter().filter_map(|row| row["kind"].as_str()).collect();
    for kind in ["T1", "T2", "T3", "T4", "T5", "hand_off"] {
        assert!(kinds.contains(&kind), "{kind}");
    }
    assert_eq!(answer["execution"]["join"]["share"], 1.0);
    assert_eq!(answer["threads"][0]["role"], "main");
}

#[test]
fn two_runs_say_the_same() {
    for args in [
        &["predict", EXAMPLE, "--json"][..],
        &["inspect", EXAMPLE, "--json"],
        &["validate", "examples", "--json"],
    ] {
        assert_eq!(stdout(args), stdout(args), "{args:?}");
    }
}
