//! A step that was compiled for a CPU.

use serde_json::json;

use crate::{failure, json as answer, text};

/// An execution trace of one op on the CPU, inside a node of this name.
fn trace(around: &str) -> tempfile::NamedTempFile {
    let node = |name: &str,
                id: u32,
                parent: u32,
                inputs: serde_json::Value,
                shapes: serde_json::Value,
                types: serde_json::Value| {
        json!({"name": name, "id": id, "rf_id": id, "parent": parent, "fw_parent": 0, "seq_id": -1, "scope": 7, "tid": 1, "fw_tid": 0,
            "op_schema": "", "inputs": inputs, "input_shapes": shapes, "input_types": types, "outputs": [], "output_shapes": [],
            "output_types": []})
    };
    let none = || json!([]);
    let tensor = json!([[5, 6, 0, 8192, 4, "cpu"]]);
    let nodes = json!([
        node("[pytorch|profiler|execution_graph|process]", 1, 1, none(), none(), none()),
        node("[pytorch|profiler|execution_graph|thread]", 2, 1, none(), none(), none()),
        node(around, 3, 2, none(), none(), none()),
        node("aten::relu_", 4, 3, tensor, json!([[64, 128]]), json!(["Tensor(float)"])),
    ]);
    let trace =
        json!({"schema": "1.0.1", "pid": 1, "time": "", "start_ts": 1, "nodes": nodes, "finish_ts": 2});
    let file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file");
    std::fs::write(file.path(), trace.to_string()).expect("written");
    file
}

#[test]
fn it_is_refused_with_the_remedy() {
    let compiled = trace("Torch-Compiled Region: 0/0");
    let said = failure(&["predict", text(compiled.path()), "--device", "h200"]);
    assert!(said.contains("Torch-Compiled Region: 0/0 was compiled for the CPU"), "{said}");
    assert!(said.contains("record the step without torch.compile"), "{said}");
}

#[test]
fn a_region_of_another_name_is_not_refused() {
    let eager = trace("my_region");
    let priced = answer(&["predict", text(eager.path()), "--device", "h200"]);
    assert!(priced["step_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{priced}");
}
