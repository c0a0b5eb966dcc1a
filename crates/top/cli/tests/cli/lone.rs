//! A step priced for a device, from its execution trace alone.

use serde_json::Value;

use crate::{json, root, stdout};

const EXAMPLES: [&str; 5] =
    ["dlrm_ddp_2048", "dlrm_default_2048", "dlrm_default_fused_2048", "dlrm_mlperf_2048", "resnet50_32"];
/// An execution trace from a CPU-only machine.
const CPU: &str = "crates/model/aten/tests/data/dlrm_cpu.json.gz";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn measured_ms(example: &str) -> f64 {
    let text = std::fs::read(root().join("examples").join(example).join("meta.json")).expect("meta.json");
    number(&serde_json::from_slice::<Value>(&text).expect("JSON")["step_ms"])
}

#[test]
fn the_step_is_near_the_measured_one() {
    for example in EXAMPLES {
        let answer = json(&["predict", &format!("examples/{example}/et.json.gz"), "--device", "h200"]);
        let error = number(&answer["step_ms"]) / measured_ms(example) - 1.0;
        assert!(error.abs() < 0.25, "{example}: {:.1} % off", 100.0 * error);
        let [low, high] = [0, 1].map(|at| number(&answer["interval_ms"][at]));
        assert!(low < number(&answer["step_ms"]) && number(&answer["step_ms"]) < high);
    }
}

#[test]
fn it_says_where_every_time_came_from() {
    let answer = json(&["predict", "examples/dlrm_default_2048/et.json.gz", "--device", "h200"]);
    assert_eq!((&answer["host"], &answer["kernels"]), (&"default".into(), &"h200".into()));
    assert_eq!(answer["device"], "NVIDIA H200");
    let coverage = &answer["kernel_coverage"];
    let parts =
        ["fitted", "analytic", "measured", "scaled", "fallback", "unknown"].map(|key| number(&coverage[key]));
    assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{coverage}");
    assert!(parts[0] > 0.95, "{coverage}");
    let families = answer["families"].as_array().expect("families");
    let sum: f64 = families.iter().map(|family| number(&family["device_ms"])).sum();
    assert!(sum >= 0.98 * number(&answer["active_ms"]), "{sum}");
    assert!(families.iter().all(|family| number(&family["half_width"]) > 0.0));
    assert!(answer["warnings"].to_string().contains("a typical host is assumed"));
    let text = stdout(&["predict", "examples/dlrm_default_2048/et.json.gz", "--device", "h200"]);
    assert!(text.contains("host default x 1.5, kernels h200"), "{text}");
    assert!(text.contains("kernel times: ") && text.contains("of device time from fitted models"), "{text}");
    assert!(!text.contains("0 of 0"), "{text}");
}

#[test]
fn a_step_with_our_own_operators_is_priced_by_fitted_models() {
    const STEP: &str = "operators/dlrm_8192";
    let answer = json(&["predict", &format!("examples/{STEP}/et.json.gz"), "--device", "h200"]);
    let families = answer["families"].as_array().expect("families");
    for (name, ops) in [("fused_embedding_bag", 2), ("interaction", 2)] {
        let family = families.iter().find(|family| family["family"] == name);
        let family = family.unwrap_or_else(|| panic!("no {name} in {}", answer["families"]));
        assert_eq!((&family["source"], &family["count"]), (&"fitted".into(), &ops.into()), "{family}");
    }
    let recorded = json(&["predict", &format!("examples/{STEP}")]);
    let active = number(&answer["active_ms"]) / number(&recorded["active_ms"]) - 1.0;
    assert!(active.abs() < 0.05, "active time {:.1} % off", 100.0 * active);
    let error = number(&answer["step_ms"]) / measured_ms(STEP) - 1.0;
    assert!(error.abs() < 0.25, "{:.1} % off", 100.0 * error);
    // The backward engine visits a tensor of the host on the main thread, which stays the main one.
    let phases: Vec<_> =
        answer["phases"].as_array().expect("phases").iter().map(|one| &one["name"]).collect();
    assert_eq!(phases, ["input", "forward", "backward", "optimizer"]);
}

#[test]
fn a_device_that_nothing_was_measured_on_has_a_wider_interval() {
    let width = |device: &str| {
        let answer = json(&["predict", "examples/resnet50_32/et.json.gz", "--device", device]);
        let [low, high] = [0, 1].map(|at| number(&answer["interval_ms"][at]));
        let families = answer["families"].as_array().expect("families");
        let most = families.iter().max_by(|a, b| number(&a["device_ms"]).total_cmp(&number(&b["device_ms"])));
        let kernels = number(&most.expect("a family")["half_width"]);
        (high / low, kernels, answer["warnings"].to_string())
    };
    let (fitted, of_kernels, without) = width("h200");
    for device in ["v100", "a100"] {
        let (wide, kernels, with) = width(device);
        // The host is as uncertain with both; kernel times are not.
        assert!(wide > fitted, "{device}: {wide} and {fitted}");
        assert!(kernels > 1.3 * of_kernels, "{device}: {kernels} and {of_kernels}");
        assert!(with.contains("no kernel was measured on") && !without.contains("no kernel was measured"));
    }
}

#[test]
fn a_step_of_a_cpu_is_moved_to_the_device() {
    let answer = json(&["predict", CPU, "--device", "h200"]);
    assert!(number(&answer["active_ms"]) > 0.1 && number(&answer["step_ms"]) > number(&answer["active_ms"]));
    assert!(answer["warnings"].to_string().contains("recorded on a CPU"), "{}", answer["warnings"]);
}

#[test]
fn a_recording_keeps_its_own_host_times() {
    let measured = json(&["predict", "examples/resnet50_32"]);
    let priced = json(&["predict", "examples/resnet50_32", "--device", "h200"]);
    assert_eq!(priced["host"], "own");
    let change = number(&priced["active_ms"]) / number(&measured["active_ms"]) - 1.0;
    assert!(change.abs() < 0.25, "{change}");
    let other = json(&["predict", "examples/resnet50_32", "--device", "p100"]);
    assert!(number(&other["active_ms"]) > 1.5 * number(&priced["active_ms"]));
}

#[test]
fn a_trace_without_shapes_says_what_is_missing() {
    let answer = json(&["predict", "examples/resnet50_32/kineto.json.gz", "--device", "h200"]);
    assert!(answer["warnings"].to_string().contains("shapes are missing"), "{}", answer["warnings"]);
}

#[test]
fn baselines_and_models_can_be_chosen() {
    let lone = "examples/dlrm_default_2048/et.json.gz";
    let sum = json(&["predict", lone, "--device", "h200", "--method", "kernel-sum"]);
    assert!(sum["active_ms"].is_null() && number(&sum["step_ms"]) > 0.0);
    let step = |more: &[&str]| {
        number(
            &json(&[&["predict", lone, "--device", "h200", "--method", "kernel-sum"], more].concat())["step_ms"],
        )
    };
    for models in ["paper", "analytic", "learnt"] {
        let change = step(&["--models", models]) / number(&sum["step_ms"]) - 1.0;
        assert!(change.abs() < 0.6, "{models}: {change}");
    }
    assert!(step(&["--tf32"]) < number(&sum["step_ms"]));
}

#[test]
fn lookups_of_the_same_rows_are_faster() {
    let bags = |indices: &str| {
        let lone = "examples/dlrm_default_2048/et.json.gz";
        let answer = json(&["predict", lone, "--device", "h200", "--indices", indices]);
        let families = answer["families"].as_array().expect("families").iter();
        let mut bags = families.filter(|family| family["family"] == "embedding_bag");
        number(&bags.next().expect("embedding bags")["device_ms"])
    };
    assert!(bags("zipf:1.2") < bags("uniform"));
}
