//! The replay by which every prediction checks itself.

use serde_json::Value;

use crate::{json, stdout};

const EXAMPLE: &str = "examples/dlrm_default_2048";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_prediction_says_how_its_recording_replays() {
    let replay = &json(&["predict", EXAMPLE])["replay"];
    assert!(number(&replay["error"]).abs() < 0.02, "{replay}");
    assert!(number(&replay["active_error"]).abs() < 0.01, "{replay}");
    let said = number(&replay["typical_ms"]) / number(&replay["recorded_ms"]) - 1.0;
    assert!((said - number(&replay["error"])).abs() < 1e-6, "{replay}");
    assert_eq!(replay["single_step"], false);
}

#[test]
fn the_step_as_profiled_is_the_one_that_the_replay_knows() {
    let profiled = json(&["predict", EXAMPLE, "--keep-profiler"]);
    assert_eq!(profiled["step_ms"], profiled["replay"]["typical_ms"]);
    let period = number(&json(&["inspect", EXAMPLE])["period_ms"]);
    assert_eq!(number(&profiled["replay"]["recorded_ms"]), period);
}

#[test]
fn a_recording_that_replays_says_nothing_of_it() {
    let answer = json(&["predict", EXAMPLE]);
    let doubts = answer["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|doubt| doubt["kind"] != "replay"), "{doubts:?}");
}

/// Four steps of two kernels on two streams, with waits between the streams that the trace does not show.
#[test]
fn a_replay_that_is_off_says_so_in_the_first_lines_and_widens_the_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("odd.json");
    let mut events = vec![];
    for step in 0..6 {
        // Steps of one, two and three milliseconds: no two in a row are alike.
        let (begin, length) = (f64::from(step) * 4000.0, [1000.0, 3900.0][step as usize % 2]);
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":1,"tid":1,"ts":{begin},"dur":{length}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"aten::{}","pid":1,"tid":1,"ts":{},"dur":{}}}"#,
            ["mm", "bmm", "add", "mul", "sub", "div"][step as usize],
            begin + 1.0,
            length - 2.0
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":4,"args":{{"correlation":{}}}}}"#,
            begin + 2.0,
            step + 1
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"correlation":{},"stream":7,"device":0}}}}"#,
            begin + 10.0,
            length / 2.0,
            step + 1
        ));
    }
    std::fs::write(&path, format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))).expect("written");
    let path = path.to_str().expect("UTF-8");
    let answer = json(&["predict", path]);
    let replay = &answer["replay"];
    assert!(number(&replay["error"]).abs() > 0.05, "{replay}");
    let doubt = &answer["doubts"][0];
    assert_eq!(doubt["kind"], "replay");
    let [low, high] = [0, 1].map(|side| number(&answer["interval_ms"][side]));
    let wider = if number(&replay["error"]) < 0.0 {
        high / number(&answer["step_ms"])
    } else {
        number(&answer["step_ms"]) / low
    };
    assert!(wider > 1.0 + number(&replay["error"]).abs(), "{answer}");
    let text = stdout(&["predict", path]);
    assert!(text.lines().take(4).any(|line| line.starts_with("! replayed with the profiler")), "{text}");
}

#[test]
fn traces_without_a_measured_step_are_scored_by_their_replay() {
    let trace = format!("{EXAMPLE}/kineto.json.gz");
    let answer = json(&["validate", "--replay-only", &trace, "examples/resnet50_32", "Cargo.toml"]);
    let rows = answer["rows"].as_array().expect("rows");
    assert!(number(&rows[0]["error"]).abs() < 0.02 && number(&rows[1]["error"]).abs() < 0.02, "{answer}");
    assert!(rows[2]["failed"].is_string(), "{answer}");
    let summary = &answer["summary"];
    assert_eq!((&summary["recordings"], &summary["several_steps"]), (&3.into(), &2.into()));
    assert_eq!((&summary["beyond"], &summary["silent"]), (&0.into(), &0.into()));
    let text = stdout(&["validate", "--replay-only", &trace]);
    assert!(text.contains("1 of several steps: median error"), "{text}");
}

#[test]
fn a_trace_of_nothing_on_a_device_is_an_error_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let op = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":5}"#;
    let other = r#"{"ph":"X","cat":"mtia_ccp_events","name":"job","pid":2,"tid":1,"ts":2,"dur":3}"#;
    for (name, events, says) in [
        ("cpu.json", op.to_owned(), "record with ProfilerActivity.CUDA"),
        ("mtia.json", format!("{op},{other}"), "accelerator is not supported (mtia_ccp_events)"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, format!(r#"{{"traceEvents":[{events}]}}"#)).expect("written");
        let path = path.to_str().expect("UTF-8");
        let output = crate::steptime(&["predict", path]).assert().failure();
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains("no GPU activity in the trace") && error.contains(says), "{error}");
        let row = &json(&["validate", "--replay-only", path])["rows"][0];
        let refused = row["failed"].as_str().is_some_and(|why| why.contains(says));
        // A step on a CPU can be replayed, though there is no step of a GPU to predict.
        assert_eq!(refused, name == "mtia.json", "{row}");
        assert_eq!(row["error"].is_number(), name == "cpu.json", "{row}");
    }
}
