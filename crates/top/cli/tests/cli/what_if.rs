//! `steptime whatif` and `steptime explain`.

use crate::json;

const EXAMPLE: &str = "examples/dlrm_default_2048";

#[test]
fn whatif_has_its_keys() {
    let answer = json(&["whatif", EXAMPLE, "--batch", "4096", "--cuda-graph"]);
    assert_eq!((&answer["schema"], &answer["command"]), (&1.into(), &"whatif".into()));
    for side in ["before", "after"] {
        for key in ["step_ms", "interval_ms", "active_ms", "idle_ms", "peak_mb"] {
            assert!(!answer[side][key].is_null(), "{side}.{key}");
        }
    }
    let names: Vec<_> =
        answer["transforms"].as_array().unwrap().iter().map(|rule| rule["name"].clone()).collect();
    assert_eq!(names, ["batch", "cuda-graph"]);
    assert!(!answer["why"].as_array().unwrap().is_empty());
    assert!(answer["after"]["active_ms"].as_f64() > answer["before"]["active_ms"].as_f64());
}

#[test]
fn inputs_copied_ahead_hold_nobody() {
    let answer = json(&["whatif", "examples/resnet50_32", "--prefetch-inputs"]);
    let [before, after] = ["before", "after"].map(|side| answer[side].clone());
    assert!(after["step_ms"].as_f64() < before["step_ms"].as_f64());
    assert!(after["active_ms"].as_f64() < before["active_ms"].as_f64());
    assert_eq!(answer["transforms"][0]["name"], "prefetch-inputs");
}

#[test]
fn a_plan_says_the_same_as_flags() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    std::fs::write(&plan, "batch = 4096\ncuda-graph = true\n").unwrap();
    let planned = json(&["whatif", EXAMPLE, "--plan", plan.to_str().unwrap()]);
    let typed = json(&["whatif", EXAMPLE, "--batch", "4096", "--cuda-graph"]);
    assert_eq!(planned, typed);
}

#[test]
fn explain_puts_the_best_first() {
    let answer = json(&["explain", EXAMPLE]);
    let saves: Vec<f64> = answer["suggestions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["saves_ms"].as_f64().unwrap())
        .collect();
    assert!(saves.len() > 2 && saves.is_sorted_by(|a, b| a >= b), "{saves:?}");
    assert!(answer["together"]["saves_ms"].as_f64().unwrap() > saves[0]);
    assert!(!answer["not_applicable"].as_array().unwrap().is_empty());
}

#[test]
fn branches_side_by_side_share_the_device() {
    let answer = json(&["whatif", "examples/resnet50_32", "--streams", "2"]);
    let [before, after] = ["before", "after"].map(|side| answer[side].clone());
    let shorter = before["active_ms"].as_f64().unwrap() - after["active_ms"].as_f64().unwrap();
    // Four projections ran after their blocks' chains before: their time is what can be saved at most.
    assert!(shorter > 0.0 && shorter < 0.5 * before["active_ms"].as_f64().unwrap(), "{shorter}");
    assert_eq!(answer["transforms"][0]["name"], "streams");
    let said = answer["transforms"][0].to_string();
    assert!(said.contains("streams wait for one another"), "{said}");
    for refused in ["0", "1"] {
        let error = crate::failure(&["whatif", "examples/resnet50_32", "--streams", refused]);
        assert!(error.contains("it takes 2 to 32"), "{error}");
    }
}
