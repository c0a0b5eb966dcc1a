//! Kernels that cannot be priced: kept, scaled, or without a single time.

use serde_json::{Value, json};

use crate::traced::ChromeTrace;
use crate::{json, stdout, text, words};

/// Kernels of 40 µs without shapes, recorded on a GPU of this name.
fn recorded_on(gpu: &str) -> tempfile::NamedTempFile {
    ChromeTrace { gpu, op: "my::op", inputs: json!({}), kernel: "elementwise_kernel", us: [40.0, 100.0] }
        .file()
}

fn predicted(device: &str) -> Value {
    let file = recorded_on(device);
    json(&["predict", text(file.path()), "--device", "h200"])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn on_the_gpu_recorded_on_kernels_keep_their_time() {
    let answer = predicted("NVIDIA H200");
    assert!((number(&answer["active_ms"]) - 0.12).abs() < 1e-6, "{answer}");
    assert!((number(&answer["kernel_coverage"]["measured"]) - 1.0).abs() < 1e-9);
    let doubts = answer["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|doubt| doubt["kind"] != "unpriced"), "{doubts:?}");
    assert_eq!(answer["families"][0]["source"], "measured");
}

#[test]
fn from_another_gpu_they_are_scaled_with_a_wide_interval() {
    let answer = predicted("NVIDIA A100-SXM4-80GB");
    let active = number(&answer["active_ms"]);
    assert!(active > 0.03 && active < 0.12, "{active}");
    assert!((number(&answer["kernel_coverage"]["scaled"]) - 1.0).abs() < 1e-9);
    assert!(number(&answer["families"][0]["half_width"]) > 0.4);
}

#[test]
fn from_a_gpu_of_which_nothing_is_known_there_is_no_estimate() {
    let answer = predicted("Some Accelerator");
    assert_eq!(answer["doubts"][0]["kind"], "unpriced");
    assert_eq!(answer["doubts"][0]["no_estimate"], true);
    assert!(number(&answer["step_ms"]) > 0.1, "{answer}");
    let [low, high] = [0, 1].map(|at| number(&answer["interval_ms"][at]));
    assert!(high > 1.2 * low, "{low} to {high}");
    let file = recorded_on("Some Accelerator");
    let said = stdout(&["predict", text(file.path()), "--device", "h200"]);
    let first: Vec<&str> = said.lines().take(3).collect();
    assert!(first[1].starts_with("step: no estimate"), "{said}");
    assert!(first[2].starts_with("! 100 % of the measured device work (3 of 3) cannot be priced"), "{said}");
    assert!(words(&said).contains("Some Accelerator has no profile to scale from"), "{said}");
}
