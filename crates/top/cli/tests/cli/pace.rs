//! The host's own speed: from pulses, probes and factors, and not from the measured step.

use std::path::Path;

use serde_json::{Value, json as object};

use crate::{failure, json, root};

/// A copy of a recording whose `meta.json` has some keys set.
fn with_meta(folder: &Path, keys: &Value) -> String {
    let from = root().join("examples/dlrm_default_2048");
    for name in ["kineto.json.gz", "et.json.gz", "kineto_et.json.gz"] {
        std::fs::copy(from.join(name), folder.join(name)).expect("a copy");
    }
    let text = std::fs::read(from.join("meta.json")).expect("meta.json");
    let mut meta: Value = serde_json::from_slice(&text).expect("JSON");
    for (key, value) in keys.as_object().into_iter().flatten() {
        meta[key] = value.clone();
    }
    std::fs::write(folder.join("meta.json"), meta.to_string()).expect("written");
    folder.display().to_string()
}

fn predicted(keys: &Value, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = with_meta(folder.path(), keys);
    let mut args = vec!["predict", &path];
    args.extend(more);
    json(&args)
}

fn step(answer: &Value) -> f64 {
    answer["step_ms"].as_f64().expect("a time")
}

#[test]
fn the_measured_step_is_never_read() {
    let pulses = object!({"before_loop_us": [20.0], "profiled_loop_us": [30.0]});
    let honest = object!({"process": "fresh", "pulses": pulses});
    let mut false_times = honest.clone();
    for key in ["step_ms", "steps_ms", "windows_ms", "quantiles_ms"] {
        false_times[key] = object!(null);
    }
    false_times["step_ms"] = object!(99.0);
    false_times["windows_ms"] = object!([99.0, 1.0]);
    for host in ["own", "default"] {
        let [one, other] = [&honest, &false_times].map(|keys| predicted(keys, &["--host", host]));
        assert_eq!(one["step_ms"], other["step_ms"], "{host}");
        assert_eq!(one["interval_ms"], other["interval_ms"], "{host}");
    }
}

#[test]
fn a_host_that_was_slow_only_while_profiled_is_faster_in_training() {
    let at = |profiled: f64| {
        let pulses = object!({"before_loop_us": [18.0], "profiled_loop_us": [profiled],
            "before_backward_loop_us": [18.0], "profiled_backward_loop_us": [profiled]});
        predicted(&object!({"process": "fresh", "pulses": pulses}), &[])
    };
    let (steady, slowed) = (at(18.0), at(32.0));
    assert!(step(&slowed) < 0.95 * step(&steady), "{} and {}", step(&slowed), step(&steady));
}

const PROBE: &str = "probe_version = 1\n[before]\nstep_cpu_us = 2000.0\nstep_gpu_us = 3500.0\nlaunch_us = 11.0\n\
    hand_off_us = 150.0\nhand_back_us = 60.0\n[copies]\nbytes = [65536]\npageable_to_gpu_us = [11.0]\n";

#[test]
fn a_probe_prices_a_step_for_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my-host.toml");
    let predict = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let host = file.display().to_string();
        json(&["predict", "examples/dlrm_default_2048/et.json.gz", "--device", "h200", "--host", &host])
    };
    let slow = predict(PROBE);
    let fast = predict(&PROBE.replace("2000", "1000").replace("3500", "2000").replace("11.0", "7.0"));
    assert!(step(&slow) > 1.2 * step(&fast), "{} and {}", step(&slow), step(&fast));
    let unknown = json(&["predict", "examples/dlrm_default_2048/et.json.gz", "--device", "h200"]);
    let width = |answer: &Value| answer["interval_ms"][1].as_f64().expect("a time") / step(answer);
    assert!(width(&unknown) > width(&slow), "a host that was measured is known better than any");
}

#[test]
fn a_recording_with_a_probe_is_a_host() {
    let answer = json(&["predict", "examples/dlrm_default_2048", "--host", "examples/probed/din_4096"]);
    let default = json(&["predict", "examples/dlrm_default_2048", "--host", "default"]);
    assert!(step(&answer) > step(&default), "its host is slower than that of the profile");
}

#[test]
fn recordings_with_pulses_are_predicted_well() {
    for (name, most) in [("din_4096", 0.1), ("sage_60000", 0.2), ("pairwise_8192", 0.15)] {
        let path = format!("examples/probed/{name}");
        let text = std::fs::read(root().join(&path).join("meta.json")).expect("meta.json");
        let truth =
            serde_json::from_slice::<Value>(&text).expect("JSON")["step_ms"].as_f64().expect("a time");
        let error = step(&json(&["predict", &path])) / truth - 1.0;
        assert!(error.abs() < most, "{name}: {:+.1} %", 100.0 * error);
    }
}

#[test]
fn a_factor_slows_a_profile_s_host() {
    let at = |times: &str| {
        step(&json(&["predict", "examples/dlrm_default_2048", "--host", "default", "--host-speed", times]))
    };
    assert!(at("2") > 1.3 * at("1"));
    let words = failure(&["predict", "examples/dlrm_default_2048", "--host-speed", "2"]);
    assert!(words.contains("--host default"), "{words}");
}

#[test]
fn a_recording_without_a_probe_is_no_host() {
    let words = failure(&["predict", "examples/dlrm_default_2048", "--host", "examples/resnet50_32"]);
    assert!(words.contains("no probe") && words.contains("steptime.probe"), "{words}");
}
