//! Recordings of the fit are not scored, or a warning names them.

use serde_json::Value;

use crate::{copy_of, json, root, stdout, steptime, text};

fn rows(answer: &Value) -> &Vec<Value> {
    answer["rows"].as_array().expect("rows")
}

#[test]
fn a_profile_that_was_fitted_on_the_recordings_says_so() {
    let said = stdout(&["validate", "examples", "--host", "default"]);
    assert!(said.contains("! in sample: the host profile was fitted on 5 of these 5 recordings"), "{said}");
    for host in ["own", "leave-one-out"] {
        let said = stdout(&["validate", "examples", "--host", host]);
        assert!(!said.contains("in sample"), "{host}: {said}");
    }
}

#[test]
fn a_recording_is_known_by_its_times_and_not_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("host.toml");
    steptime(&["host", "fit", "examples/dlrm_default_2048", "-o", text(&profile)]).assert().success();
    // The recording of the fit under another name, and another one under its name.
    let renamed = copy_of("dlrm_default_2048");
    let posing = folder.path().join("dlrm_default_2048");
    let other = copy_of("resnet50_32");
    std::fs::rename(other.path(), &posing).expect("renamed");
    let answer = json(&["validate", text(renamed.path()), text(&posing), "--host", text(&profile)]);
    let known: Vec<bool> = rows(&answer).iter().filter_map(|row| row["in_sample"].as_bool()).collect();
    assert_eq!(known, [true, false], "{answer}");
    assert!(answer["warnings"].to_string().contains("fitted on 1 of these 2 recordings"), "{answer}");
}

#[test]
fn whole_architectures_are_left_out() {
    let answer = json(&["validate", "examples", "--host", "leave-one-out"]);
    for row in rows(&answer) {
        let expected = if row["name"].to_string().contains("dlrm") { "dlrm" } else { "resnet50" };
        assert_eq!(row["architecture"], expected, "{row}");
    }
    let said = stdout(&["validate", "examples", "--host", "leave-one-out"]);
    assert!(said.contains("left out together: dlrm (4), resnet50 (1)"), "{said}");
    // Without names, their steps still identify them.
    let one = copy_of("dlrm_default_2048");
    let two = copy_of("dlrm_mlperf_2048");
    for (folder, model) in [(&one, "anna"), (&two, "boris")] {
        let path = folder.path().join("meta.json");
        let mut meta: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("meta.json")).expect("JSON");
        meta["model"] = model.into();
        std::fs::write(&path, meta.to_string()).expect("written");
    }
    steptime(&["validate", text(one.path()), text(two.path()), "--host", "leave-one-out"])
        .assert()
        .failure()
        .stderr(predicates::str::contains("all of these are of anna"));
}

#[test]
fn steps_are_scored_from_their_execution_traces_alone() {
    let all = ["validate", "examples", "--kernels", "h200", "--host", "leave-one-out"];
    let whole = json(&all);
    let lone = json(&[&all[..], &["--lone"]].concat());
    assert_eq!((&whole["lone"], &lone["lone"]), (&false.into(), &true.into()));
    assert_eq!(rows(&whole).len(), rows(&lone).len());
    for (whole, lone) in rows(&whole).iter().zip(rows(&lone)) {
        assert_eq!((&whole["name"], &whole["measured_ms"]), (&lone["name"], &lone["measured_ms"]));
        let [with, without] = [whole, lone].map(|row| row["predicted_ms"].as_f64().expect("a time"));
        assert!(with != without && (without / with - 1.0).abs() < 0.1, "{whole}\n{lone}");
    }
    // Equal to `predict` of the trace alone, with the same host profile.
    let path = root().join("examples/resnet50_32");
    let by_default = ["validate", text(&path), "--kernels", "h200", "--host", "default", "--lone"];
    let scored = json(&by_default);
    let trace = path.join("et.json.gz");
    let alone = json(&["predict", text(&trace), "--device", "h200", "--process", "profiled"]);
    assert_eq!(rows(&scored)[0]["predicted_ms"], alone["step_ms"]);
}
