//! A small Kineto trace, made by hand: ten steps of three ops that launch one kernel each.

use std::io::Write;

use serde_json::{Map, Value, json};

/// Contents of the trace.
pub struct ChromeTrace<'a> {
    /// Name of the GPU, as reported by the driver.
    pub gpu: &'a str,
    /// Name of the op.
    pub op: &'a str,
    /// Recorded arguments of its inputs.
    pub inputs: Value,
    /// Name of the kernel.
    pub kernel: &'a str,
    /// Duration of the kernel, and distance between the beginnings of ops, µs.
    pub us: [f64; 2],
}

impl ChromeTrace<'_> {
    /// The trace in a file, which is gone when this is dropped.
    pub fn file(&self) -> tempfile::NamedTempFile {
        let ChromeTrace { gpu, op, inputs, kernel, us: [us, apart] } = self;
        let mut events = Vec::new();
        for step in 0..10 {
            let at = 1000.0 * f64::from(step) + 1000.0;
            let event = |cat: &str, name: &str, ts: f64, dur: f64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": if cat == "kernel" { 7 } else { 1 }, "args": args});
            events.push(event(
                "user_annotation",
                &format!("ProfilerStep#{step}"),
                at,
                3.0 * apart + 50.0,
                json!({}),
            ));
            for number in 0..3 {
                let (id, from) = (100 * step + number + 1, at + apart * f64::from(number));
                let mut called: Map<String, Value> = inputs.as_object().cloned().unwrap_or_default();
                called.insert("External id".into(), json!(id));
                events.push(event("cpu_op", op, from, 20.0, called.into()));
                let launch = json!({"correlation": id, "External id": id});
                events.push(event("cuda_runtime", "cudaLaunchKernel", from + 5.0, 5.0, launch));
                let args = json!({"correlation": id, "stream": 7, "device": 0, "External id": id});
                events.push(event("kernel", kernel, from + 15.0, *us, args));
            }
        }
        let trace =
            json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": gpu}], "traceEvents": events});
        let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file");
        file.write_all(trace.to_string().as_bytes()).expect("written");
        file
    }
}
