//! Inputs too large or too deep for any step are refused in words, and no number in an answer is negative.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{failure, json, steptime, text};

/// A file in a folder.
fn file(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).expect("a file");
    path
}

/// An execution trace of nodes: name, parent, shape of the one input and output tensor of each.
fn execution(folder: &Path, nodes: &[(&str, u64, &[u64])], first_id: u64) -> PathBuf {
    let node = |(at, (name, parent, shape)): (u64, &(&str, u64, &[u64]))| {
        let strides: Vec<u64> = shape
            .iter()
            .rev()
            .scan(1, |stride: &mut u64, size| {
                let own = *stride;
                *stride = stride.saturating_mul(*size);
                Some(own)
            })
            .collect();
        let strides: Vec<u64> = strides.into_iter().rev().collect();
        let tensor = |id: u64| {
            json!({
                "values": [[1000 + id, 2000 + id, 0, shape.iter().product::<u64>(), 4, "cuda:0"]],
                "shapes": [shape], "types": ["Tensor(float)"], "strides": [strides]
            })
        };
        let attribute =
            |name: &str, kind: &str, value: Value| json!({"name": name, "type": kind, "value": value});
        json!({
            "id": first_id.saturating_add(at), "name": name, "ctrl_deps": parent,
            "inputs": tensor(0), "outputs": tensor(at + 1),
            "attrs": [
                attribute("rf_id", "uint64", json!(at)), attribute("scope", "uint64", json!(0)),
                attribute("tid", "uint64", json!(1)), attribute("seq_id", "int64", json!(-1)),
                attribute("op_schema", "string", json!(format!("{name}(Tensor self) -> Tensor"))),
            ]
        })
    };
    let nodes: Vec<Value> = (0..).zip(nodes).map(node).collect();
    let trace = json!({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "nodes": nodes, "finish_ts": 1});
    file(folder, "x.et.json", &trace.to_string())
}

/// A Kineto trace of ops, each inside the one before it.
fn nested(folder: &Path, depth: usize) -> PathBuf {
    let mut events = String::new();
    for at in 0..depth {
        let (ts, dur) = (at, 3 * depth - 2 * at);
        let _ = write!(
            events,
            r#"{{"ph":"X","cat":"cpu_op","name":"aten::neg","pid":1,"tid":1,"ts":{ts},"dur":{dur}}},"#
        );
    }
    let at = depth;
    let _ = write!(
        events,
        r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{at},"dur":1,"args":{{"correlation":1}}}},
        {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":1,"args":{{"correlation":1,"stream":7,"device":0}}}}"#,
        at + 2
    );
    file(folder, "deep.json", &format!(r#"{{"traceEvents":[{events}]}}"#))
}

#[test]
fn ops_that_nest_too_deep_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = nested(folder.path(), 20_000);
    for question in [&["predict"][..], &["inspect"], &["view", "-o", "x.html"], &["roofline"]] {
        let error = failure(&[&question[..1], &[text(&deep)], &question[1..]].concat());
        assert!(error.contains("ops nest 20001 deep, and at most 500 are read"), "{question:?}: {error}");
    }
    let nodes: Vec<_> = (0..20_000).map(|at| ("aten::neg", 9 + at, &[8_u64][..])).collect();
    let deep = execution(folder.path(), &nodes, 10);
    for question in [&["predict"][..], &["whatif", "--cuda-graph"], &["explain"], &["roofline"]] {
        let error = failure(&[&question[..1], &[text(&deep), "--device", "h200"], &question[1..]].concat());
        assert!(error.contains("ops nest 20000 deep, and at most 500 are read"), "{question:?}: {error}");
    }
    assert!(failure(&["inspect", text(&deep)]).contains("at most 500"));
    steptime(&["predict", text(&nested(folder.path(), 499))]).assert().success();
}

#[test]
fn tensors_that_no_gpu_has_room_for_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let large = execution(folder.path(), &[("aten::neg", 0, &[1 << 60]), ("aten::abs", 0, &[8])], 10);
    for question in [&["predict"][..], &["whatif", "--on-stream", "aten::abs"], &["roofline"]] {
        let error = failure(&[&question[..1], &[text(&large), "--device", "h200"], &question[1..]].concat());
        assert!(error.contains("aten::neg would touch"), "{question:?}: {error}");
    }
}

#[test]
fn nodes_with_the_largest_ids_are_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = execution(folder.path(), &[("aten::neg", 0, &[8]), ("aten::abs", 0, &[8])], u64::MAX - 1);
    let out = folder.path().join("out.et.json");
    steptime(&["whatif", text(&path), "--device", "h200", "--graph", text(&out)]).assert().success();
    let ids = |path: &Path| -> Vec<u64> {
        let trace: Value = serde_json::from_slice(&fs::read(path).expect("a trace")).expect("JSON");
        let nodes = trace["nodes"].as_array().expect("nodes");
        nodes.iter().map(|node| node["id"].as_u64().expect("an id")).collect()
    };
    let mut written = ids(&out);
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), 4, "two ops, their thread, the process: {written:?}");
    assert_eq!(
        json(&["predict", text(&out), "--device", "h200"])["step_ms"].as_f64().map(|ms| ms > 0.0),
        Some(true)
    );
}

#[test]
fn idle_times_are_not_below_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = |category: &str, name: &str, tid: u32, [ts, dur]: [f64; 2], correlation: u32| {
        json!({"ph": "X", "cat": category, "name": name, "pid": u32::from(tid < 9), "tid": tid, "ts": ts, "dur": dur,
            "args": {"correlation": correlation, "stream": 7, "device": 0}})
    };
    let events = [
        event("cuda_runtime", "cudaGraphLaunch", 1, [0.0, 9.0], 1),
        event("kernel", "k", 9, [3.0, 2.0], 1),
        event("cuda_runtime", "cudaMemcpyAsync", 1, [10.0, 30.0], 2),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 9, [12.0, 5.0], 2),
        event("cuda_runtime", "cudaFree", 2, [41.0, 3.0], 3),
    ];
    let path = file(folder.path(), "k.json", &json!({"traceEvents": events}).to_string());
    for host in ["own", "default"] {
        let answer = json(&["predict", text(&path), "--host", host]);
        for (cause, time) in answer["idle_ms"].as_object().expect("idle times") {
            assert!(time.as_f64() >= Some(0.0), "{cause}: {time}");
        }
        let [low, high] = [0, 1].map(|at| answer["interval_ms"][at].as_f64().expect("an interval"));
        assert!(0.0 < low && low <= high, "{low} to {high}");
    }
}

#[test]
fn a_model_may_have_thousands_of_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = |tables: usize, columns: usize, interaction: &str| {
        let content = format!(
            "model = \"dlrm\"\nbatch = 16\ndense = 4\nbottom_mlp = [{columns}]\ntop_mlp = [1]\n\
             interaction = \"{interaction}\"\ntables = [{{ rows = 100, columns = {columns}, count = {tables} }}]\n"
        );
        file(folder.path(), "model.toml", &content)
    };
    assert!(steptime(&["predict", text(&model(2_100, 4, "cat")), "--device", "h200"]).ok().is_ok());
    let error = failure(&["predict", text(&model(10_000, 1 << 20, "cross")), "--device", "h200"]);
    assert!(error.contains("more than 10^13 elements"), "{error}");
}
