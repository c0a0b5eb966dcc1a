//! Small execution traces for tests, in the profiler's format.

use super::ExecutionGraph;
use std::fmt::Write;
use steptime_trace::{ExecutionTrace, read_execution_trace};

/// Node of a trace to build.
#[derive(Clone, Default)]
pub(crate) struct Node {
    id: u64,
    parent: u64,
    name: String,
    schema: String,
    inputs: &'static str,
    outputs: &'static str,
    rf_id: u64,
    sequence: Option<i64>,
    thread: u64,
    forward_thread: u64,
}

impl Node {
    /// Returns an operator named by its schema. The process is node 1, its first thread node 2.
    pub(crate) fn op(id: u64, parent: u64, schema: &str) -> Node {
        let name = schema.split(['.', '(']).next().unwrap_or_default().to_owned();
        Node { id, parent, name, schema: schema.to_owned(), thread: 1, ..Node::default() }
    }

    pub(crate) fn named(mut self, name: &str) -> Node {
        name.clone_into(&mut self.name);
        self
    }

    /// Float tensors: `f TENSOR STORAGE SHAPE`, separated by semicolons.
    pub(crate) fn inputs(self, inputs: &'static str) -> Node {
        Node { inputs, ..self }
    }

    pub(crate) fn outputs(self, outputs: &'static str) -> Node {
        Node { outputs, ..self }
    }

    pub(crate) fn rf_id(self, rf_id: u64) -> Node {
        Node { rf_id, ..self }
    }

    pub(crate) fn thread(self, thread: u64) -> Node {
        Node { thread, ..self }
    }

    pub(crate) fn sequence(self, sequence: i64, thread: u64) -> Node {
        Node { sequence: Some(sequence), thread, ..self }
    }

    pub(crate) fn backward(self, forward_thread: u64) -> Node {
        Node { forward_thread, ..self }
    }

    fn json(&self) -> String {
        let scope = u8::from(self.forward_thread != 0);
        let mut attributes = String::new();
        let numbers = [
            ("rf_id", self.rf_id as i64),
            ("fw_parent", 0),
            ("seq_id", self.sequence.unwrap_or(-1)),
            ("scope", i64::from(scope)),
            ("tid", self.thread as i64),
            ("fw_tid", self.forward_thread as i64),
        ];
        for (name, value) in numbers {
            write!(attributes, r#"{{"name":"{name}","type":"int64","value":{value}}},"#).unwrap();
        }
        format!(
            r#"{{"id":{},"name":"{}","ctrl_deps":{},"inputs":{},"outputs":{},"attrs":[{attributes}{{"name":"op_schema","type":"string","value":"{}"}}]}}"#,
            self.id,
            self.name,
            self.parent,
            tensors(self.inputs),
            tensors(self.outputs),
            self.schema,
        )
    }
}

fn tensors(list: &str) -> String {
    let (mut values, mut shapes, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for tensor in list.split(';').filter(|tensor| !tensor.is_empty()) {
        let parts: Vec<&str> = tensor.split_whitespace().collect();
        let numel: u64 = parts[3].split(',').map(|dim| dim.parse::<u64>().unwrap()).product();
        values.push(format!(r#"[{},{},0,{numel},4,"cuda:0"]"#, parts[1], parts[2]));
        shapes.push(format!("[{}]", parts[3]));
        types.push(r#""Tensor(float)""#);
    }
    let (values, shapes, types) = (values.join(","), shapes.join(","), types.join(","));
    format!(r#"{{"values":[{values}],"shapes":[{shapes}],"types":[{types}]}}"#)
}

/// Returns a trace of a process, one thread and these nodes, as the reader returns it.
pub(crate) fn trace(nodes: &[Node]) -> ExecutionTrace {
    let process = Node::op(1, 1, "").named("[pytorch|profiler|execution_trace|process]");
    let thread = Node::op(2, 1, "").named("[pytorch|profiler|execution_trace|thread]");
    let all: Vec<String> = [process, thread].iter().chain(nodes).map(Node::json).collect();
    let text = format!(r#"{{"schema":"1.0.2-chakra.0.0.4","pid":1,"nodes":[{}]}}"#, all.join(","));
    read_execution_trace(text.as_bytes()).unwrap()
}

/// Returns the graph of [`trace`].
pub(crate) fn graph(nodes: &[Node]) -> ExecutionGraph {
    ExecutionGraph::new(&trace(nodes))
}
