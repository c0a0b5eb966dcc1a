//! One node in the layout of the file.

use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
pub(super) struct Node<'s> {
    pub id: u64,
    pub name: &'s str,
    #[serde(rename = "ctrl_deps")]
    pub parent: u64,
    pub inputs: ValueLists,
    pub outputs: ValueLists,
    #[serde(rename = "attrs")]
    pub attributes: Vec<Attribute>,
}

/// Inputs or outputs, as parallel lists.
#[derive(Serialize, Default)]
pub(super) struct ValueLists {
    pub values: Vec<Value>,
    pub shapes: Vec<Value>,
    pub types: Vec<String>,
    pub strides: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct Attribute {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    value: Value,
}

pub(super) struct Attributes {
    pub record_function: u64,
    pub forward_parent: u64,
    pub sequence: i64,
    pub scope: u8,
    pub thread: u64,
    pub forward_thread: u64,
    pub schema: String,
    pub kernel_backend: String,
    pub kernel_file: String,
}

impl<'s> Node<'s> {
    /// A node without inputs and outputs.
    pub fn label(id: u64, name: &'s str, parent: u64, attributes: Attributes) -> Node<'s> {
        let (inputs, outputs) = (ValueLists::default(), ValueLists::default());
        Node { id, name, parent, inputs, outputs, attributes: attributes.list() }
    }
}

impl Attributes {
    /// Attributes of the process and of threads.
    pub fn label(thread: u64) -> Attributes {
        Attributes {
            record_function: 0,
            forward_parent: 0,
            sequence: -1,
            scope: super::USER,
            thread,
            forward_thread: 0,
            schema: String::new(),
            kernel_backend: String::new(),
            kernel_file: String::new(),
        }
    }

    pub fn list(self) -> Vec<Attribute> {
        let of = |name, kind, value| Attribute { name, kind, value };
        vec![
            of("rf_id", "uint64", json!(self.record_function)),
            of("fw_parent", "uint64", json!(self.forward_parent)),
            of("seq_id", "int64", json!(self.sequence)),
            of("scope", "uint64", json!(self.scope)),
            of("tid", "uint64", json!(self.thread)),
            of("fw_tid", "uint64", json!(self.forward_thread)),
            of("op_schema", "string", json!(self.schema)),
            of("kernel_backend", "string", json!(self.kernel_backend)),
            of("kernel_file", "string", json!(self.kernel_file)),
            of("tensor_range", "string", json!("")),
        ]
    }
}
