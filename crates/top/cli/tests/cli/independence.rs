//! A prediction does not depend on the measured step time.

use serde_json::Value;

use crate::{copy_of, stdout, text};

#[test]
fn the_measured_step_does_not_change_the_prediction() {
    let folder = copy_of("dlrm_default_2048");
    for host in ["own", "default"] {
        let args = ["predict", text(folder.path()), "--host", host, "--json"];
        let before = stdout(&args);
        let path = folder.path().join("meta.json");
        let mut meta: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("meta.json")).expect("JSON");
        for key in ["step_ms", "steps_ms", "windows_ms", "quantiles_ms"] {
            assert!(meta[key].take() != Value::Null || host == "default", "{key} was there");
        }
        meta["step_ms"] = 123.456.into();
        std::fs::write(&path, meta.to_string()).expect("written");
        assert_eq!(stdout(&args), before, "--host {host}");
    }
}

#[test]
fn no_meta_json_is_needed() {
    let folder = copy_of("dlrm_default_2048");
    std::fs::remove_file(folder.path().join("meta.json")).expect("removed");
    let trace = folder.path().join("kineto.json.gz");
    let alone: Value = serde_json::from_str(&stdout(&["predict", text(&trace), "--json"])).expect("JSON");
    let whole = crate::json(&["predict", "examples/dlrm_default_2048"]);
    assert_eq!(alone["step_ms"], whole["step_ms"]);
    assert!(alone["batch"].is_null() && alone["samples_per_s"].is_null());
}
