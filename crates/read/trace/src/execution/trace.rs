//! Contents of one execution trace.

use super::{LinkedActivity, Nodes, Schema, Tensor, Value, ValueRange, Values};
use crate::collective::Collective;
use crate::distributed::ProcessGroup;
use crate::json::Cursor;
use crate::repairs::Notes;
use crate::strings::{NameId, Strings};

/// Ops of one step with their tensors, in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionTrace {
    /// Layout version of the file.
    pub schema: Schema,
    /// Process id.
    pub pid: i64,
    /// Names of the trace, each once.
    pub names: Strings,
    /// Nodes, by id.
    pub nodes: Nodes,
    /// Inputs and outputs of the nodes.
    pub values: Values,
    /// Arguments of collectives, from schema 1.1.0 on.
    pub collectives: Vec<Collective>,
    /// Process groups, from schema 1.0.2 on.
    pub process_groups: Vec<ProcessGroup>,
    /// Device work that a linker wrote among the nodes.
    pub linked: Vec<LinkedActivity>,
    /// Repairs and findings.
    pub notes: Notes,
}

impl ExecutionTrace {
    /// Id of the root node, which represents the process.
    pub const PROCESS_ID: u64 = 1;
    /// Names of the root node, new and old.
    pub const PROCESS_NAMES: [&str; 2] =
        ["[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_graph|process]"];
    /// Names of nodes that represent a thread, new and old.
    pub const THREAD_NAMES: [&str; 2] =
        ["[pytorch|profiler|execution_trace|thread]", "[pytorch|profiler|execution_graph|thread]"];
    /// Name of nodes that list process groups.
    pub const PROCESS_GROUPS_NAME: &str = "## process_group:init ##";

    /// Returns the name of an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }

    /// Whether row `node` is an operator, as opposed to a label.
    ///
    /// # Panics
    /// If `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_operator(&self, node: usize) -> bool {
        let name = self.name(self.nodes.name[node]);
        let has_schema = !self.name(self.nodes.op_schema[node]).is_empty();
        name == "record_param_comms"
            || (has_schema && !name.starts_with("c10d::"))
            || self.name(self.nodes.kernel_backend[node]) == "triton"
    }

    /// Whether row `node` represents the process.
    ///
    /// # Panics
    /// If `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_process(&self, node: usize) -> bool {
        Self::PROCESS_NAMES.contains(&self.name(self.nodes.name[node]))
    }

    /// Whether row `node` represents a thread.
    ///
    /// # Panics
    /// If `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn is_thread(&self, node: usize) -> bool {
        Self::THREAD_NAMES.contains(&self.name(self.nodes.name[node]))
    }

    /// Returns the inputs of row `node`.
    ///
    /// # Panics
    /// If `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn inputs(&self, node: usize) -> &[Value] {
        self.list(self.nodes.inputs[node])
    }

    /// Returns the outputs of row `node`.
    ///
    /// # Panics
    /// If `node` is not a row of [`ExecutionTrace::nodes`].
    #[must_use]
    pub fn outputs(&self, node: usize) -> &[Value] {
        self.list(self.nodes.outputs[node])
    }

    /// Returns the values of a list, see [`Values::list`].
    ///
    /// # Panics
    /// If the range is of another trace and out of bounds.
    #[must_use]
    pub fn list(&self, range: ValueRange) -> &[Value] {
        self.values.list(range)
    }

    /// Returns the tensor of a tensor value.
    #[must_use]
    pub fn tensor(&self, value: Value) -> Option<&Tensor> {
        match value {
            Value::Tensor(index) => Some(self.values.tensor(index)),
            _ => None,
        }
    }

    /// Returns the shape of a tensor of this trace.
    ///
    /// # Panics
    /// If the tensor is of another trace.
    #[must_use]
    pub fn shape(&self, tensor: &Tensor) -> &[i64] {
        self.values.dims(tensor.shape)
    }

    /// Returns the strides of a tensor of this trace, in elements, if recorded.
    ///
    /// # Panics
    /// If the tensor is of another trace.
    #[must_use]
    pub fn strides(&self, tensor: &Tensor) -> Option<&[i64]> {
        tensor.strides.map(|range| self.values.dims(range))
    }

    /// Returns the tensors of a value: itself, or those in a list at any nesting depth.
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

/// Returns the process groups listed in the nodes for them, as JSON in a string.
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
