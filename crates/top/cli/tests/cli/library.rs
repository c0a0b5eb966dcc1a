//! A recording with another version of a library than that of the profile's sweep.

use serde_json::{Value, json};

use crate::traced::ChromeTrace;
use crate::{json, text};

const SHAPE: [u32; 4] = [16, 16, 64, 1024];

/// Copies of 64 MB that take `us` on an H100. They have shapes, and no strides.
fn recorded(kernel: &str, us: f64) -> tempfile::NamedTempFile {
    let inputs = json!({"Input Dims": [SHAPE, SHAPE, []], "Input type": ["float", "float", "Scalar"]});
    ChromeTrace { gpu: "NVIDIA H100 80GB HBM3", op: "aten::copy_", inputs, kernel, us: [us, 300.0] }.file()
}

fn predicted(kernel: &str, us: f64, device: &str) -> Value {
    json(&["predict", text(recorded(kernel, us).path()), "--device", device])
}

const DENSE: &str = "vectorized_elementwise_kernel";

#[test]
fn kernels_that_the_profile_knows_otherwise_are_said_wherever_they_will_run() {
    for device in ["h100", "a100-80gb", "h200"] {
        let answer = predicted(DENSE, 250.0, device);
        let doubt = &answer["doubts"][0];
        assert_eq!(doubt["kind"], "library", "{answer}");
        let said = doubt["text"].as_str().expect("text");
        assert!(said.contains("device_copy took") && said.contains("the profile of NVIDIA H100"), "{said}");
        let [step, high] =
            [&answer["step_ms"], &answer["interval_ms"][1]].map(|number| number.as_f64().expect("a number"));
        assert!(high > 1.1 * step, "{step}, at most {high}");
    }
}

#[test]
fn kernels_that_are_as_the_profile_says_are_not_doubted() {
    let active = predicted(DENSE, 50.0, "h100")["active_ms"].as_f64().expect("a number");
    let answer = predicted(DENSE, 1000.0 * active / 3.0, "h100");
    let doubts = answer["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|doubt| doubt["kind"] != "library"), "{doubts:?}");
}

#[test]
fn the_name_of_a_kernel_tells_tensors_that_do_not_lie_densely() {
    let [dense, strided] =
        [DENSE, "elementwise_kernel"].map(|name| predicted(name, 60.0, "h100")["active_ms"].as_f64());
    assert!(strided > dense, "{strided:?} of {dense:?}");
}
