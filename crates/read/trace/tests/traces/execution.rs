//! The same small execution trace in every schema.

use steptime_trace::{Carrier, ExecutionTrace, Value, read_execution_trace};

const SCHEMAS: [&str; 7] = ["1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.1.0", "1.1.1"];

fn fixture(schema: &str) -> ExecutionTrace {
    let path = format!("{}/tests/data/et_{schema}.json", env!("CARGO_MANIFEST_DIR"));
    read_execution_trace(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns the row of the node with this name.
fn row(trace: &ExecutionTrace, name: &str) -> usize {
    let id = trace.names.find(name).unwrap();
    trace.nodes.name.iter().position(|&other| other == id).unwrap()
}

#[test]
fn every_schema_gives_the_same_nodes() {
    for schema in SCHEMAS {
        let trace = fixture(schema);
        assert!(trace.notes.is_clean(), "{schema}: {:?}", trace.notes);
        assert!(trace.schema.is_known());
        assert!(trace.nodes.id.is_sorted());
        let cat = row(&trace, "aten::cat");
        let node = trace.nodes.row(cat);
        assert_eq!((node.id, node.parent, node.rf_id, node.tid), (8, 3, 3, 1), "{schema}");
        assert_eq!(node.seq_id, if schema == "1.0.0" { -1 } else { 622 }, "{schema}");
        assert!(trace.name(node.op_schema).starts_with("aten::cat("));
        assert_eq!(trace.nodes.find(8), Some(cat));
        assert_eq!(trace.nodes.find(9), None);
        assert!(trace.is_process(0) && trace.is_thread(1));
    }
}

#[test]
fn tensors_in_lists_keep_their_shapes() {
    for schema in SCHEMAS {
        let trace = fixture(schema);
        let inputs = trace.inputs(row(&trace, "aten::cat"));
        assert_eq!(inputs[1], Value::Int(1));
        let tensors = trace.tensors(inputs[0]);
        let shapes: Vec<_> = tensors.iter().map(|tensor| trace.shape(tensor)).collect();
        assert_eq!(shapes, [[2, 4], [2, 2]], "{schema}");
        let second = tensors[1];
        assert_eq!((second.tensor_id, second.storage_id, second.offset, second.numel), (7, 6, 8, 4));
        assert_eq!((trace.name(second.dtype), second.itemsize), ("float", 4));
        assert_eq!(trace.name(second.device), if schema == "1.0.0" { "" } else { "cuda:0" });
        let strides = trace.strides(second);
        assert_eq!(strides, (schema == "1.1.1").then_some(&[2, 1][..]), "{schema}");
    }
}

#[test]
fn every_kind_of_value() {
    for schema in SCHEMAS {
        let trace = fixture(schema);
        let inputs = trace.inputs(row(&trace, "aten::mul_"));
        assert!(matches!(inputs[1], Value::Float(number) if number.is_nan()));
        assert_eq!(inputs[2..5], [Value::Float(2.0), Value::None, Value::Bool(false)]);
        assert!(matches!(inputs[5], Value::Device(name) if trace.name(name) == "cuda:0"));
        let Value::List(numbers) = inputs[6] else { panic!("{:?}", inputs[6]) };
        assert_eq!(trace.list(numbers), [Value::Int(16), Value::Int(-1)]);
        assert!(matches!(inputs[7], Value::List(empty) if empty.is_empty()));
        assert!(matches!(inputs[8], Value::Str(name) if trace.name(name) == "sum"));
    }
}

#[test]
fn operators_are_told_from_labels() {
    for schema in SCHEMAS {
        let trace = fixture(schema);
        for (name, expect) in [("aten::cat", true), ("record_param_comms", true), ("## forward ##", false)] {
            assert_eq!(trace.is_operator(row(&trace, name)), expect, "{schema} {name}");
        }
    }
}

#[test]
fn collectives_and_groups_from_schema_1_1_on() {
    for schema in ["1.1.0", "1.1.1"] {
        let trace = fixture(schema);
        let collective = &trace.collectives[0];
        let node = row(&trace, "record_param_comms") as u32;
        assert_eq!(collective.carrier, Carrier::Node(node));
        assert_eq!((trace.name(collective.name), collective.in_elements), ("allreduce", 12));
        assert_eq!(collective.group_size, Some(2));
        assert_eq!(trace.process_groups[0].name, "0");
    }
}
