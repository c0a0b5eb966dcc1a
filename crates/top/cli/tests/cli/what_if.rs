//! `steptime whatif` and `steptime explain`.

use crate::{json, stdout, text};

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
fn idle_causes_have_the_names_of_predict() {
    let names = |command: &[&str], mark: &str| -> Vec<String> {
        let lines = stdout(command);
        let named = lines.lines().filter_map(|line| line.trim_start().strip_prefix(mark));
        named.map(|rest| rest.split("  ").next().unwrap_or(rest).trim().to_owned()).collect()
    };
    let predicted = names(&["predict", EXAMPLE], "· ");
    let changed = names(&["whatif", EXAMPLE, "--batch", "4096"], "device idle: ");
    let compared = names(&["compare", EXAMPLE, "examples/dlrm_default_fused_2048"], "device idle: ");
    assert!(predicted.len() > 3, "{predicted:?}");
    for cause in &predicted {
        assert!(changed.contains(cause) && compared.contains(cause), "{cause}: {changed:?}, {compared:?}");
    }
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
    // Before, four projections ran after their blocks' chains: their time is the most that can be saved.
    assert!(shorter > 0.0 && shorter < 0.5 * before["active_ms"].as_f64().unwrap(), "{shorter}");
    assert_eq!(answer["transforms"][0]["name"], "streams");
    let said = answer["transforms"][0].to_string();
    assert!(said.contains("streams wait for one another"), "{said}");
    for refused in ["0", "1"] {
        let error = crate::failure(&["whatif", "examples/resnet50_32", "--streams", refused]);
        assert!(error.contains("it must be 2 to 32"), "{error}");
    }
}

#[test]
fn samples_a_second_follow_the_batch() {
    let answer = json(&["whatif", "examples/resnet50_32", "--batch", "64", "--accumulate", "2"]);
    for (side, samples) in [("before", 32.0), ("after", 128.0)] {
        let side = &answer[side];
        let rate = samples / side["step_ms"].as_f64().expect("a step") * 1e3;
        assert!((side["samples_per_s"].as_f64().expect("a rate") / rate - 1.0).abs() < 1e-9, "{side}");
    }
    let said = stdout(&["whatif", EXAMPLE, "--batch", "4096"]);
    assert!(said.lines().nth(2).is_some_and(|line| line.ends_with(" samples/s")), "{said}");
}

#[test]
fn what_costs_time_alone_is_in_no_combination() {
    for example in [EXAMPLE, "examples/resnet50_32"] {
        let answer = json(&["explain", example]);
        let saves = |name: &serde_json::Value| {
            let found =
                answer["suggestions"].as_array().expect("rows").iter().find(|row| row["name"] == *name);
            found.expect("a suggestion")["saves_ms"].as_f64().expect("a number")
        };
        let names = answer["together"]["names"].as_array().expect("names");
        assert!(names.iter().all(|name| saves(name) > 0.0), "{names:?}");
        assert!(answer.get("to_fit").is_none());
    }
}

#[test]
fn where_a_step_does_not_fit_changes_that_save_memory_are_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("large.et.json");
    stdout(&["whatif", "examples/resnet50_32", "--batch", "512", "--graph", text(&graph)]);
    let args = ["explain", text(&graph), "--device", "l4"];
    let answer = json(&args);
    assert_eq!((&answer["before"]["fits"], &answer["doubts"][0]["kind"]), (&false.into(), &"memory".into()));
    let tried: Vec<&str> =
        answer["to_fit"].as_array().expect("changes").iter().filter_map(|one| one["name"].as_str()).collect();
    for name in ["checkpoint", "bf16", "accumulate", "fsdp"] {
        assert!(tried.contains(&name), "{name} among {tried:?}");
    }
    assert!(stdout(&args).contains("to fit"), "{}", stdout(&args));
}
