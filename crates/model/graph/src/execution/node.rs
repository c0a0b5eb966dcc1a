//! Kinds of nodes, and their recorded attributes.

use super::ids::NodeId;
use super::tree::Tree;
use crate::names::{EventName, mentions_backward};
use steptime_trace::{ExecutionTrace, NameId};

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Process, at the root.
    Process,
    /// Host thread, directly below the process.
    Thread,
    /// Operator: it has a schema, or is a collective or a generated kernel.
    Operator,
    /// Label around a piece of code, set by the user or a library.
    Annotation,
    /// Function of the autograd engine, around the operators of one backward step.
    Backward,
    /// List of process groups, for which nothing ran.
    ProcessGroups,
    /// Anything else: the engine's own marks, functions without a schema.
    Other,
}

/// PyTorch's `RecordScope::BACKWARD_FUNCTION`.
const BACKWARD_SCOPE: u8 = 1;
/// PyTorch's `RecordScope::USER_SCOPE`.
const USER_SCOPE: u8 = 7;

impl NodeAttributes {
    fn from_row(trace: &ExecutionTrace, row: usize) -> NodeAttributes {
        let nodes = &trace.nodes;
        NodeAttributes {
            record_function: nodes.rf_id[row],
            sequence: nodes.seq_id[row],
            scope: nodes.scope[row],
            forward_parent: nodes.fw_parent[row],
            forward_thread: nodes.fw_tid[row],
            kernel_backend: nodes.kernel_backend[row],
            kernel_file: nodes.kernel_file[row],
        }
    }
}

impl NodeKind {
    pub(super) fn from_row(trace: &ExecutionTrace, row: usize) -> NodeKind {
        let name = trace.name(trace.nodes.name[row]);
        let scope = trace.nodes.scope[row];
        if trace.is_process(row) {
            NodeKind::Process
        } else if trace.is_thread(row) {
            NodeKind::Thread
        } else if name == ExecutionTrace::PROCESS_GROUPS_NAME {
            NodeKind::ProcessGroups
        } else if trace.is_operator(row) {
            NodeKind::Operator
        } else if EventName::parse(name).is_engine() {
            NodeKind::Other
        } else if scope == BACKWARD_SCOPE || (scope != USER_SCOPE && mentions_backward(name)) {
            NodeKind::Backward
        } else if scope == USER_SCOPE {
            NodeKind::Annotation
        } else {
            NodeKind::Other
        }
    }

    /// Whether a profiler records the node as an event too.
    #[must_use]
    pub fn ran(self) -> bool {
        !matches!(self, NodeKind::Process | NodeKind::Thread | NodeKind::ProcessGroups)
    }
}

/// Recorded attributes of a node, apart from its name, its thread, its inputs and its outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeAttributes {
    /// `Record function id` of the same op in a Kineto trace of the same step; 0 if there is none.
    pub record_function: u64,
    /// Sequence number that links forward and backward; -1 if there is none.
    pub sequence: i64,
    /// PyTorch's `RecordScope`: 0 function, 1 backward function, 7 user scope.
    pub scope: u8,
    /// For a backward op, the id of the node around its forward op; 0 if there is none.
    pub forward_parent: u64,
    /// For a backward op, the thread of its forward op; 0 if there is none.
    pub forward_thread: u64,
    /// Generator of the kernel, for example `triton`; empty if there is none.
    pub kernel_backend: NameId,
    /// File of the generated kernel; empty if there is none.
    pub kernel_file: NameId,
}

/// Nodes in id order, in columns; their nesting is in [`Tree`].
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// Id in the trace.
    pub id: Vec<u64>,
    /// Kind of the node.
    pub kind: Vec<NodeKind>,
    /// Name of the operator or label.
    pub name: Vec<NameId>,
    /// Schema of the operator; empty for labels.
    pub schema: Vec<NameId>,
    /// Host thread, in the profiler's numbering.
    pub thread: Vec<u64>,
    /// Other recorded attributes.
    pub noted: Vec<NodeAttributes>,
    /// Outermost operator around it, itself included; `None` outside of operators.
    pub top_level: Vec<Option<NodeId>>,
}

impl Nodes {
    pub(super) fn from_trace(trace: &ExecutionTrace, tree: &Tree) -> Nodes {
        let kind: Vec<NodeKind> = (0..tree.len()).map(|row| NodeKind::from_row(trace, row)).collect();
        let mut top_level: Vec<Option<NodeId>> = Vec::with_capacity(kind.len());
        for (row, &kind) in kind.iter().enumerate() {
            let node = NodeId::at(row);
            let outer = tree.parent(node).and_then(|parent| top_level[parent.index()]);
            top_level.push(outer.or((kind == NodeKind::Operator).then_some(node)));
        }
        Nodes {
            id: trace.nodes.id.clone(),
            kind,
            name: trace.nodes.name.clone(),
            schema: trace.nodes.op_schema.clone(),
            thread: trace.nodes.tid.clone(),
            noted: (0..tree.len()).map(|row| NodeAttributes::from_row(trace, row)).collect(),
            top_level,
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Whether the node is an operator.
    #[must_use]
    pub fn is_operator(&self, node: NodeId) -> bool {
        self.kind[node.index()] == NodeKind::Operator
    }

    /// Whether the node is an operator that is not inside another operator.
    #[must_use]
    pub fn is_top_level(&self, node: NodeId) -> bool {
        self.top_level[node.index()] == Some(node)
    }
}
