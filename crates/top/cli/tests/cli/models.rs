//! Models described in TOML: each is an input like an execution trace alone.

use std::path::PathBuf;

use serde_json::Value;

use crate::{json, root, steptime};

/// The descriptions in `examples/models`.
fn described() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("examples/models")).expect("examples");
    let mut files: Vec<PathBuf> = folder.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_description_is_predicted_by_fitted_models() {
    let files = described();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        // The first rank of a job.
        let answer = json(&["predict", &file.display().to_string(), "--device", "h200", "--rank", "0"]);
        let (step, active) = (number(&answer["step_ms"]), number(&answer["active_ms"]));
        assert!(active > 0.1 && step > active && step < 200.0, "{}: {step} ms", file.display());
        assert!(number(&answer["kernel_coverage"]["unknown"]) == 0.0, "{}: {answer}", file.display());
        assert!(number(&answer["kernel_coverage"]["fallback"]) == 0.0, "{}: {answer}", file.display());
        let phases = answer["phases"].as_array().expect("phases");
        for name in ["input", "forward", "backward", "optimizer"] {
            let busy = |phase: &Value| phase["name"] == name && number(&phase["host_ms"]) > 0.0;
            assert!(phases.iter().any(busy), "{}: {name}: {phases:?}", file.display());
        }
    }
}

#[test]
fn a_described_model_takes_as_long_as_the_recorded_one() {
    for name in ["dlrm_default", "dlrm_ddp", "dlrm_mlperf"] {
        let of = |input: &str| json(&["predict", input, "--device", "h200"]);
        let described = of(&format!("examples/models/{name}.toml"));
        let recorded = of(&format!("examples/{name}_2048/et.json.gz"));
        for key in ["step_ms", "active_ms"] {
            let ratio = number(&described[key]) / number(&recorded[key]);
            assert!((ratio - 1.0).abs() < 0.01, "{name}: {key} {ratio}");
        }
    }
}

#[test]
fn it_can_be_changed_explained_and_inspected() {
    let file = "examples/models/dlrm_default.toml";
    let larger = json(&["whatif", file, "--device", "h200", "--batch", "8192"]);
    let folder = tempfile::tempdir().expect("a folder");
    let described = std::fs::read_to_string(root().join(file)).expect("a description");
    let path = folder.path().join("larger.toml");
    std::fs::write(&path, described.replace("batch = 2048", "batch = 8192")).expect("written");
    let anew = json(&["predict", &path.display().to_string(), "--device", "h200"]);
    let ratio = number(&larger["after"]["active_ms"]) / number(&anew["active_ms"]);
    assert!((ratio - 1.0).abs() < 0.03, "the batch changed and the batch described: {ratio}");
    for command in ["explain", "roofline"] {
        steptime(&[command, file, "--device", "h200"]).assert().success();
    }
    steptime(&["inspect", file]).assert().success();
}

#[test]
fn what_describes_no_model_is_refused_with_file_place_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.toml");
    let good =
        std::fs::read_to_string(root().join("examples/models/dlrm_default.toml")).expect("a description");
    let cases = [
        ("rows = 1_000_000", "rows = 0", "`tables[0].rows` is 0: a table has one row or more"),
        ("batch = 2048", "batch = 0", "`batch` is 0: a step takes one sample or more"),
        ("bottom_mlp", "botom_mlp", "did you mean `bottom_mlp`?"),
        ("\"dlrm\"", "\"dlmr\"", "did you mean `dlrm`?"),
        ("batch = 2048", "batch = ", "TOML parse error at line"),
    ];
    for (from, to, expected) in cases {
        std::fs::write(&path, good.replace(from, to)).expect("written");
        let name = path.display().to_string();
        let failed = steptime(&["predict", &name, "--device", "h200"]).assert().failure().code(1);
        let said = String::from_utf8_lossy(&failed.get_output().stderr);
        assert!(said.contains(&name) && said.contains(expected), "{to}: {said}");
    }
}
