//! The device memory of a step.

use crate::{json, stdout, words};

const EXAMPLE: &str = "examples/resnet50_32";
/// Number of parameters of ResNet-50, of four bytes each.
const PARAMETERS: f64 = 25_557_032.0;

fn mb(answer: &serde_json::Value, key: &str) -> f64 {
    answer["peak_mb"][key].as_f64().unwrap_or_else(|| panic!("no number `{key}` in {}", answer["peak_mb"]))
}

#[test]
fn parameters_gradients_and_momenta_are_as_large_as_the_model() {
    let answer = json(&["predict", EXAMPLE]);
    for kind in ["parameters", "gradients", "optimizer"] {
        let model = 4.0 * PARAMETERS / 1e6;
        assert!((mb(&answer, kind) / model - 1.0).abs() < 0.001, "{kind}: {}", mb(&answer, kind));
    }
    let kinds = ["parameters", "gradients", "optimizer", "activations", "workspace"];
    let sum: f64 = kinds.iter().map(|kind| mb(&answer, kind)).sum();
    assert!((sum - mb(&answer, "total")).abs() < 1e-6);
    assert!(words(&stdout(&["predict", EXAMPLE])).contains("peak memory: 3,137 MB (activations 2,750,"));
}

#[test]
fn an_execution_trace_alone_needs_as_much() {
    let (whole, alone) = (
        json(&["predict", EXAMPLE]),
        json(&["predict", "examples/resnet50_32/et.json.gz", "--device", "h200"]),
    );
    assert!((mb(&alone, "total") / mb(&whole, "total") - 1.0).abs() < 0.01);
}

#[test]
fn a_larger_batch_has_larger_activations_and_no_larger_model() {
    let answer = json(&["whatif", EXAMPLE, "--batch", "64"]);
    let (before, after) = (&answer["before"], &answer["after"]);
    let ratio = mb(after, "activations") / mb(before, "activations");
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    assert_eq!(mb(after, "parameters"), mb(before, "parameters"));
    assert!(stdout(&["whatif", EXAMPLE, "--batch", "64"]).contains("peak memory: 3,137 to "));
}

#[test]
fn a_batch_that_is_copied_ahead_is_there_twice() {
    let answer = json(&["whatif", EXAMPLE, "--prefetch-inputs"]);
    let more = mb(&answer["after"], "total") - mb(&answer["before"], "total");
    let images = f64::from(32 * 3 * 224 * 224 * 4) / 1e6;
    assert!((more / images - 1.0).abs() < 0.01, "{more}");
}

#[test]
fn what_does_not_fit_is_said_first() {
    let answer = json(&["whatif", EXAMPLE, "--batch", "4096"]);
    let first = &answer["doubts"][0];
    assert_eq!(first["kind"], "memory", "{first}");
    assert!(first["text"].as_str().is_some_and(|text| text.contains("run out of memory")), "{first}");
    assert!(json(&["predict", EXAMPLE])["doubts"].as_array().is_some_and(Vec::is_empty));
    // A GPU with 17 GB.
    let small = json(&["whatif", EXAMPLE, "--batch", "256", "--device", "v100"]);
    assert_eq!(small["doubts"][0]["kind"], "memory", "{}", small["doubts"]);
}

#[test]
fn without_an_execution_trace_nothing_is_claimed() {
    let alone = json(&["predict", "examples/resnet50_32/kineto.json.gz"]);
    assert!(alone["peak_mb"].is_null());
}
