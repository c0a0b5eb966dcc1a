//! Described models on several GPUs: predicted, placed, scaled.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{failure, json, stdout, steptime, text, words};

/// A model of six tables of which two are large.
const MODEL: &str = r#"model = "dlrm"
batch = 1024
dense = 13
bottom_mlp = [64, 32]
top_mlp = [64, 1]
loss = "mse"
tables = [
  { rows = 2_000_000, columns = 32, lookups = 40, count = 2 },
  { rows = 5_000, columns = 32, lookups = 2, count = 4 },
]
"#;

fn described(folder: &Path, parallel: &str) -> PathBuf {
    let path = folder.join("model.toml");
    std::fs::write(&path, format!("{MODEL}\n{parallel}")).expect("a file");
    path
}

fn ms(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().expect("a number")
}

#[test]
fn the_ranks_of_a_described_job_are_predicted_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = described(folder.path(), "[parallel]\ngpus = 2\nplacement = [[0, 1, 2, 3, 4, 5], []]");
    let args = ["predict", text(&bad), "--device", "h200"];
    let answer = json(&args);
    assert_eq!((&answer["world"], &answer["batch"]), (&Value::from(2), &Value::from(1024)));
    assert_eq!(answer["ranks"].as_array().map(Vec::len), Some(2));
    let uneven = ms(&answer, "step_ms");
    let waits = |rank: usize| ms(&answer["ranks"][rank], "waits_ms");
    assert!(waits(1) > 10.0 * waits(0), "the second rank has no table and waits");
    let even = described(folder.path(), "[parallel]\ngpus = 2");
    let answer_even = json(&["predict", text(&even), "--device", "h200"]);
    assert!(ms(&answer_even, "step_ms") < 0.97 * uneven);
    // Of two that do about the same one is slower; a rank that is late anyway is late by itself.
    let slowest = |answer: &Value| ms(&answer["slowest_host"], "times");
    assert!((1.01..1.015).contains(&slowest(&answer_even)), "{}", answer_even["slowest_host"]);
    assert!((1.0..1.001).contains(&slowest(&answer)), "{}", answer["slowest_host"]);
    assert!(words(&stdout(&["predict", text(&even), "--device", "h200"])).contains("2 ranks on NVIDIA H200"));
    // One of them by itself says that it is.
    let alone = json(&["predict", text(&even), "--device", "h200", "--rank", "1"]);
    assert_eq!(alone["doubts"][0]["kind"], "ranks");
    assert!(failure(&["predict", text(&even)]).contains("--device"));
}

#[test]
fn a_plan_is_found_written_read_and_told_in_both_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let plan = folder.path().join("plan.json");
    let found = json(&["shard", text(&model), "--gpus", "2", "--device", "h200", "-o", text(&plan)]);
    let tables = found["tables"].as_array().expect("tables");
    assert_eq!(tables.len(), 6);
    let on = |table: usize| tables[table]["gpus"].clone();
    assert_ne!(on(0), on(1), "the large tables lie apart");
    let step = ms(&found["predicted"], "step_ms");
    assert!(ms(&found, "bound_ms") <= step);
    for other in found["others"].as_array().expect("others") {
        assert!(ms(other, "step_ms") >= step);
    }
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(&plan).expect("a plan")).expect("JSON");
    let first = &written["plan"]["sparse_arch.embedding_bag_collection"]["t_0"];
    assert_eq!(first["sharding_type"], "table_wise");
    assert_eq!(first["shards"][0]["shard_sizes"], serde_json::json!([2_000_000, 32]));
    let told = json(&["shard", text(&model), "--device", "h200", "--evaluate", text(&plan)]);
    assert_eq!((&told["tables"], ms(&told["predicted"], "step_ms")), (&found["tables"], step));
    let matrix = folder.path().join("matrix.json");
    let args = ["shard", text(&model), "--device", "h200", "--evaluate", text(&plan)];
    stdout(&[&args[..], &["-o", text(&matrix), "--format", "hugectr"]].concat());
    let again = json(&["shard", text(&model), "--device", "h200", "--evaluate", text(&matrix)]);
    assert_eq!(again["tables"], found["tables"]);
    let page = words(&stdout(&args));
    assert!(page.contains("GPU alone ms"), "{page}");
}

#[test]
fn bad_plans_and_tables_that_do_not_fit_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let shard = |more: &[&str]| failure(&[&["shard", text(&model), "--device", "h200"][..], more].concat());
    let plan = folder.path().join("plan.json");
    for (written, said) in [
        ("{", "not JSON"),
        ("[1]", "a plan is"),
        (
            r#"{"plan": {"m": {"t_9": {"sharding_type": "table_wise", "shards": []}}}}"#,
            "table `t_9` is not of this model",
        ),
        (r#"{"plan": {"m": {}}}"#, "table t_0 is not placed"),
        (r#"{"shard_matrix": [["t_0"], ["t_1"]]}"#, "table t_2 is not placed"),
    ] {
        std::fs::write(&plan, written).expect("a file");
        let error = shard(&["--evaluate", text(&plan)]);
        assert!(error.contains(said), "{written}: {error}");
    }
    let small = shard(&["--gpus", "2", "--memory", "0.05"]);
    assert!(small.contains("needs 0.") && small.contains("take more GPUs"), "{small}");
    assert!(shard(&["--gpus", "3"]).contains("3 GPUs cannot share evenly"));
    steptime(&["shard", text(&model), "--device", "h200"]).assert().code(2);
    steptime(&["shard", text(&model), "--gpus", "2", "--device", "h200", "--memory", "-1"]).assert().code(2);
    // A plan that memory does not hold is told the time of, and that it does not run.
    let large = std::fs::read_to_string(&model).expect("read").replace("2_000_000", "900_000_000");
    let path = folder.path().join("large.toml");
    std::fs::write(&path, format!("{large}\n[parallel]\ngpus = 2\nplacement = [[0, 1], []]"))
        .expect("a file");
    let told = json(&["predict", text(&path), "--device", "h200"]);
    let doubt = told["doubts"][0]["text"].as_str().expect("a doubt");
    assert!(
        doubt.starts_with("rank 0: its tensors need 230.") && doubt.contains("run out of memory"),
        "{doubt}"
    );
    assert!(failure(&["scale", "examples", "--device", "h200"]).contains("ends in .toml"));
    // The description is not written over.
    assert!(
        failure(&["shard", text(&model), "--gpus", "2", "--device", "h200", "-o", text(&model)])
            .contains("model.toml")
    );
}

#[test]
fn a_model_is_scaled() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = described(folder.path(), "");
    let args = ["scale", text(&model), "--device", "h200", "--gpus", "4,1,64", "--price", "2"];
    let answer = json(&args);
    let rows = answer["rows"].as_array().expect("rows");
    let gpus: Vec<i64> = rows.iter().filter_map(|row| row["gpus"].as_i64()).collect();
    assert_eq!(gpus, [1, 4, 64]);
    assert!((ms(&rows[0], "efficiency") - 1.0).abs() < 1e-9 && ms(&rows[2], "efficiency") < 0.5);
    assert_eq!(rows[1]["batch"], 1024);
    let cost = |row: &Value| 2.0 * ms(row, "gpus") * 1e9 / ms(row, "samples_per_s") / 3600.0;
    assert!((ms(&rows[1], "cost") / cost(&rows[1]) - 1.0).abs() < 1e-9);
    let weak = json(&[&args[..], &["--weak"]].concat());
    assert_eq!(weak["rows"][2]["batch"], 64 * 1024);
    assert!(words(&stdout(&args)).contains("all GPUs share the samples"));
}
