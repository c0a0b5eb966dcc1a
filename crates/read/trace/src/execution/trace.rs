//! The whole of one execution trace.

use super::{LinkedActivity, Nodes, Schema, Tensor, Value, ValueRange, Values};
use crate::collective::Collective;
use crate::distributed::ProcessGroup;
use crate::json::Cursor;
use crate::notes::Notes;
use crate::strings::{NameId, Strings};

/// The ops of one step, with their tensors, in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionTrace {
    /// The layout it was written in.
    pub schema: Schema,
    /// The process.
    pub pid: i64,
    /// Every name, once.
    pub names: Strings,
    /// The nodes, by id.
    pub nodes: Nodes,
    /// Their inputs and outputs.
    pub values: Values,
    /// Arguments of collectives, from schema 1.1.0 on.
    pub collectives: Vec<Collective>,
    /// The process groups, from schema 1.0.2 on.
    pub process_groups: Vec<ProcessGroup>,
    /// Device work that a linker wrote among the nodes.
    pub linked: Vec<LinkedActivity>,
    /// What was repaired.
    pub notes: Notes,
}

impl ExecutionTrace {
    /// The id of the node at the root, which stands for the process.
    pub const PROCESS_ID: u64 = 1;
    /// The names of the node at the root, new and old.
    pub const PROCESS_NAMES: [&str; 2] =
        ["[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_graph|process]"];
    /// The names of nodes that stand for a thread, new and old.
    pub const THREAD_NAMES: [&str; 2] =
        ["[pytorch|profiler|execution_trace|thread]", "[pytorch|profiler|execution_graph|thread]"];
    /// The name of nodes that list process groups.
    pub const PROCESS_GROUPS_NAME: &str = "## process_group:init ##";

    /// The name behind an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }

    /// Whether row `node` is an operator, as opposed to a label.
    ///
    /// # Panics
    /// When `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_operator(&self, node: usize) -> bool {
        let name = self.name(self.nodes.name[node]);
        let has_schema = !self.name(self.nodes.op_schema[node]).is_empty();
        name == "record_param_comms"
            || (has_schema && !name.starts_with("c10d::"))
            || self.name(self.nodes.kernel_backend[node]) == "triton"
    }

    /// Whether row `node` stands for the process.
    ///
    /// # Panics
    /// When `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_process(&self, node: usize) -> bool {
        Self::PROCESS_NAMES.contains(&self.name(self.nodes.name[node]))
    }

    /// Whether row `node` stands for a thread.
    ///
    /// # Panics
    /// When `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_thread(&self, node: usize) -> bool {
        Self::THREAD_NAMES.contains(&self.name(self.nodes.name[node]))
    }

    /// What went into row `node`.
    ///
    /// # Panics
    /// When `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn inputs(&self, node: usize) -> &[Value] {
        self.list(self.nodes.inputs[node])
    }

    /// What came out of row `node`.
    ///
    /// # Panics
    /// When `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn outputs(&self, node: usize) -> &[Value] {
        self.list(self.nodes.outputs[node])
    }

    /// The values of a list, see [`Values::list`].
    ///
    /// # Panics
    /// When the range is of another trace and out of bounds.
    #[must_use]
    pub fn list(&self, range: ValueRange) -> &[Value] {
        self.values.list(range)
    }

    /// The tensor that a value is.
    #[must_use]
    pub fn tensor(&self, value: Value) -> Option<&Tensor> {
        match value {
            Value::Tensor(index) => Some(self.values.tensor(index)),
            _ => None,
        }
    }

    /// The shape of a tensor of this trace.
    ///
    /// # Panics
    /// When the tensor is of another trace.
    #[must_use]
    pub fn shape(&self, tensor: &Tensor) -> &[i64] {
        self.values.dims(tensor.shape)
    }

    /// The strides of a tensor of this trace, in elements, where recorded.
    ///
    /// # Panics
    /// When the tensor is of another trace.
    #[must_use]
    pub fn strides(&self, tensor: &Tensor) -> Option<&[i64]> {
        tensor.strides.map(|range| self.values.dims(range))
    }

    /// The tensors of a value: itself, or those in a list, however nested.
    #[must_use]
    pub fn tensors(&self, value: Value) -> Vec<&Tensor> {
        let mut found = Vec::new();
        let mut todo = vec![value];
        while let Some(value) = todo.pop() {
            match value {
                Value::Tensor(index) => found.push(self.values.tensor(index)),
                Value::List(range) => todo.extend(self.list(range).iter().rev()),
                _ => {}
            }
        }
        found
    }
}

/// The groups that the nodes made for them list, as JSON in a string.
pub(super) fn process_groups(nodes: &Nodes, values: &Values, names: &Strings) -> Vec<ProcessGroup> {
    let Some(init) = names.find(ExecutionTrace::PROCESS_GROUPS_NAME) else { return Vec::new() };
    let mut groups = Vec::new();
    for row in (0..nodes.len()).filter(|&row| nodes.name[row] == init) {
        for value in values.list(nodes.inputs[row]) {
            if let Value::Str(text) = value {
                let json = names.get(*text).as_bytes();
                groups.extend(ProcessGroup::read_list(&mut Cursor::new(json)).unwrap_or_default());
            }
        }
    }
    groups
}
