//! An execution trace of a step that replays a CUDA graph holds only copies of the batch.

use std::io::Write;

use serde_json::{Value, json};

use crate::{json as answer, stdout};

fn node(id: u64, parent: u64, name: &str, schema: &str, inputs: &Value, outputs: &Value) -> Value {
    let attributes = json!([
        {"name": "rf_id", "type": "uint64", "value": id}, {"name": "fw_parent", "type": "uint64", "value": 0},
        {"name": "seq_id", "type": "int64", "value": -1}, {"name": "scope", "type": "uint64", "value": if schema.is_empty() { 7 } else { 0 }},
        {"name": "tid", "type": "uint64", "value": 1}, {"name": "fw_tid", "type": "uint64", "value": 0},
        {"name": "op_schema", "type": "string", "value": schema}
    ]);
    json!({"id": id, "name": name, "ctrl_deps": parent, "inputs": inputs, "outputs": outputs, "attrs": attributes})
}

/// Values of tensors of 2048 x 512, and those after them.
fn tensors(places: &[(u64, &str)], rest: Option<(Value, &str)>) -> Value {
    let mut values: Vec<Value> =
        places.iter().map(|(id, place)| json!([id, id + 1, 0, 1_048_576, 4, place])).collect();
    let (mut shapes, mut strides) =
        (vec![json!([2048, 512]); places.len()], vec![json!([512, 1]); places.len()]);
    let mut types = vec!["Tensor(float)"; places.len()];
    if let Some((value, kind)) = rest {
        values.push(value);
        types.push(kind);
        shapes.push(json!([]));
        strides.push(json!([]));
    }
    json!({"values": values, "shapes": shapes, "types": types, "strides": strides})
}

/// A step of one copy of a batch, and with `with_op` an op on the GPU after it.
fn trace(with_op: bool) -> tempfile::NamedTempFile {
    let none = tensors(&[], None);
    let copy = "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)";
    let clamp = "aten::clamp_min(Tensor self, Scalar min) -> Tensor";
    let copied = tensors(&[(9, "cuda:0"), (5, "cpu")], Some((json!(false), "Bool")));
    let mut nodes = vec![
        node(2, 1, "[pytorch|profiler|execution_trace|thread]", "", &none, &none),
        node(11, 2, "aten::copy_", copy, &copied, &tensors(&[(9, "cuda:0")], None)),
    ];
    if with_op {
        let clamped = tensors(&[(9, "cuda:0")], Some((json!(0), "Int")));
        nodes.push(node(12, 2, "aten::clamp_min", clamp, &clamped, &tensors(&[(15, "cuda:0")], None)));
    }
    let trace = json!({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026-11-21 03:14:45", "start_ts": 1, "finish_ts": 2, "nodes": nodes});
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file");
    file.write_all(trace.to_string().as_bytes()).expect("written");
    file
}

#[test]
fn a_step_of_copies_alone_gets_no_estimate() {
    let trace = trace(false);
    let path = trace.path().to_str().expect("UTF-8");
    let text = stdout(&["predict", path, "--device", "h200"]);
    assert!(text.contains("step: no estimate") && text.contains("replays a CUDA graph"), "{text}");
    let answer = answer(&["predict", path, "--device", "h200"]);
    let doubts = answer["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().any(|doubt| doubt["kind"] == "captured"), "{doubts:?}");
}

#[test]
fn a_step_with_an_op_on_the_gpu_gets_one() {
    let trace = trace(true);
    let path = trace.path().to_str().expect("UTF-8");
    let answer = answer(&["predict", path, "--device", "h200"]);
    let doubts = answer["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|doubt| doubt["kind"] != "captured"), "{doubts:?}");
    assert!(answer["step_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{answer}");
}
