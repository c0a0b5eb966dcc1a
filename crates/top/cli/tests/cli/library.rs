//! A recording by another version of a library than the one that a profile was swept with.

use std::io::Write;

use serde_json::{Value, json};

use crate::{json, text};

const SHAPE: [u32; 4] = [16, 16, 64, 1024];

/// Ten steps of three copies of 64 MB, which take so long on an H100. They have shapes, and no strides.
fn recorded(kernel: &str, us: f64) -> tempfile::NamedTempFile {
    let mut events = Vec::new();
    for step in 0..10 {
        let at = 1000.0 * f64::from(step) + 1000.0;
        let event = |cat: &str, name: &str, ts: f64, dur: f64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": if cat == "kernel" { 7 } else { 1 }, "args": args});
        events.push(event("user_annotation", &format!("ProfilerStep#{step}"), at, 950.0, json!({})));
        for number in 0..3 {
            let (id, from) = (100 * step + number + 1, at + 300.0 * f64::from(number));
            let called = json!({"External id": id, "Input Dims": [SHAPE, SHAPE, []], "Input type": ["float", "float", "Scalar"]});
            events.push(event("cpu_op", "aten::copy_", from, 20.0, called));
            let launch = json!({"correlation": id, "External id": id});
            events.push(event("cuda_runtime", "cudaLaunchKernel", from + 5.0, 5.0, launch));
            let args = json!({"correlation": id, "stream": 7, "device": 0, "External id": id});
            events.push(event("kernel", kernel, from + 15.0, us, args));
        }
    }
    let gpu = "NVIDIA H100 80GB HBM3";
    let trace =
        json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": gpu}], "traceEvents": events});
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file");
    file.write_all(trace.to_string().as_bytes()).expect("written");
    file
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
    assert_eq!(answer["doubts"], json!([]), "{answer}");
}

#[test]
fn the_name_of_a_kernel_tells_tensors_that_do_not_lie_densely() {
    let [dense, strided] =
        [DENSE, "elementwise_kernel"].map(|name| predicted(name, 60.0, "h100")["active_ms"].as_f64());
    assert!(strided > dense, "{strided:?} of {dense:?}");
}
