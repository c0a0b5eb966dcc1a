//! Events of a trace that other writers leave out, write wrongly, or merge.

use std::io::Read;
use std::path::PathBuf;

use serde_json::{Value, json as value};

use crate::{json, root, text};

const EXAMPLE: &str = "dlrm_default_2048";

/// The trace of an example, with changed events, as a file of its own.
fn changed(folder: &tempfile::TempDir, change: impl FnOnce(&mut Vec<Value>)) -> PathBuf {
    let file = std::fs::File::open(root().join("examples").join(EXAMPLE).join("kineto.json.gz"));
    let mut whole = String::new();
    flate2::read::GzDecoder::new(file.expect("the trace")).read_to_string(&mut whole).expect("text");
    let mut trace: Value = serde_json::from_str(&whole).expect("JSON");
    change(trace["traceEvents"].as_array_mut().expect("events"));
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace.to_string()).expect("written");
    path
}

/// The answer of `predict --keep-profiler` for a path with further options.
fn replayed(path: &std::path::Path, more: &[&str]) -> Value {
    let mut args = vec!["predict", text(path), "--keep-profiler"];
    args.extend(more);
    json(&args)
}

/// A number of an answer.
fn ms(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().unwrap_or_else(|| panic!("{key} of {answer}"))
}

fn is_kernel(event: &Value) -> bool {
    event["cat"] == "kernel"
}

#[test]
fn arrows_link_what_no_correlation_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = replayed(&changed(&folder, |_| ()), &[]);
    let arrows = changed(&folder, |events| {
        for event in events {
            if let Some(args) = event["args"].as_object_mut() {
                args.remove("correlation");
                args.remove("External id");
            }
        }
    });
    let linked = replayed(&arrows, &[]);
    for key in ["step_ms", "active_ms"] {
        let off = (ms(&linked, key) / ms(&recorded, key) - 1.0).abs();
        assert!(off < 0.01, "{key}: {} is {}", linked[key], recorded[key]);
    }
    let doubts = linked["doubts"].to_string();
    assert!(
        doubts.contains("3750 repairs") && doubts.contains("linked to their calls by flow arrows"),
        "{doubts}"
    );
}

#[test]
fn a_trace_cut_before_its_kernels_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changed(&folder, |events| {
        let is_on_device =
            |event: &Value| event["pid"] == 0 && event["ph"] == "X" && event["args"].get("stream").is_some();
        let at = |event: &Value| event["ts"].as_f64().unwrap_or(f64::MAX);
        let first = events.iter().filter(|event| is_on_device(event)).map(at).fold(f64::MAX, f64::min);
        events.retain(|event| !is_on_device(event) || at(event) == first);
    });
    let whole = std::fs::read_to_string(&path).expect("the trace");
    let end = whole.rfind("}]").expect("the end of the events");
    std::fs::write(&path, &whole[..end]).expect("written");
    let refused = crate::failure(&["roofline", text(&path)]);
    assert!(refused.contains("no kernel, copy or fill of its step takes any time (1 repair"), "{refused}");
    assert!(refused.contains("the file ends in the middle"), "{refused}");
}

#[test]
fn a_kernel_ends_before_the_next_of_its_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = replayed(&changed(&folder, |_| ()), &[]);
    let mut longer = 0;
    let path = changed(&folder, |events| {
        for kernel in events.iter_mut().filter(|event| is_kernel(event)).step_by(50) {
            kernel["dur"] = value!(kernel["dur"].as_f64().expect("a duration") + 1e4);
            longer += 1;
        }
    });
    let cut = replayed(&path, &[]);
    assert!((ms(&cut, "step_ms") / ms(&recorded, "step_ms") - 1.0).abs() < 0.01, "{}", cut["step_ms"]);
    assert!((ms(&cut, "active_ms") / ms(&recorded, "active_ms") - 1.0).abs() < 0.05, "{}", cut["active_ms"]);
    let doubts = cut["doubts"].to_string();
    assert!(doubts.contains("overlap the next on their stream shortened"), "{longer} kernels: {doubts}");
}

#[test]
fn processes_of_one_file_are_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = replayed(&changed(&folder, |_| ()), &[]);
    // The second process has the same correlations as the first: on its own GPU, and on the same one.
    for (device, busier) in [(1, 1.5), (0, 1.0)] {
        let path = changed(&folder, |events| {
            let mut second = events.clone();
            for event in &mut second {
                let is_device = event["pid"] == 0;
                event["pid"] = if is_device { value!(device) } else { value!(99_999) };
                let on_device = event["args"].get("device").is_some();
                if on_device && is_device {
                    event["args"]["device"] = value!(device);
                }
                if is_kernel(event) {
                    event["dur"] = value!(event["dur"].as_f64().expect("a duration") * busier);
                }
                if device == 0 {
                    // One GPU runs both in turn.
                    event["ts"] = value!(event["ts"].as_f64().unwrap_or_default() + 1e6);
                }
            }
            events.extend(second);
        });
        let [first, second] = ["0", "1"].map(|rank| replayed(&path, &["--rank", rank]));
        assert!(
            (ms(&first, "step_ms") / ms(&recorded, "step_ms") - 1.0).abs() < 1e-3,
            "{}",
            first["step_ms"]
        );
        assert!(
            (ms(&first, "active_ms") / ms(&recorded, "active_ms") - 1.0).abs() < 1e-3,
            "{}",
            first["step_ms"]
        );
        assert!(ms(&second, "active_ms") > 0.99 * ms(&first, "active_ms"), "{}", second["active_ms"]);
        if busier > 1.0 {
            assert!(ms(&second, "active_ms") > 1.2 * ms(&first, "active_ms"), "{}", second["active_ms"]);
        }
    }
}
