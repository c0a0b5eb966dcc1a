//! What each node is.

use super::ids::NodeId;
use super::tree::Tree;
use crate::names::{EventName, mentions_backward};
use steptime_trace::{ExecutionTrace, NameId};

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The process, at the root.
    Process,
    /// A host thread, directly below the process.
    Thread,
    /// An operator: it has a schema, or is a collective or a generated kernel.
    Operator,
    /// A label that the user or a library set around a piece of code.
    Annotation,
    /// A function of the autograd engine, around the operators of one backward step.
    Backward,
    /// The list of process groups, which nothing ran for.
    ProcessGroups,
    /// Anything else: the engine's own marks, functions without a schema.
    Other,
}

/// PyTorch's `RecordScope::BACKWARD_FUNCTION`.
const BACKWARD_SCOPE: u8 = 1;
/// PyTorch's `RecordScope::USER_SCOPE`.
const USER_SCOPE: u8 = 7;

impl Noted {
    fn of(trace: &ExecutionTrace, row: usize) -> Noted {
        let nodes = &trace.nodes;
        Noted {
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
    pub(super) fn of(trace: &ExecutionTrace, row: usize) -> NodeKind {
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
        } else if EventName::of(name).is_engine() {
            NodeKind::Other
        } else if scope == BACKWARD_SCOPE || (scope != USER_SCOPE && mentions_backward(name)) {
            NodeKind::Backward
        } else if scope == USER_SCOPE {
            NodeKind::Annotation
        } else {
            NodeKind::Other
        }
    }

    /// Whether something ran that a profiler sees too.
    #[must_use]
    pub fn ran(self) -> bool {
        !matches!(self, NodeKind::Process | NodeKind::Thread | NodeKind::ProcessGroups)
    }
}

/// What the recorder noted of a node beside its name, its thread and what it took and gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// The `Record function id` of the same op in a Kineto trace of the same step; 0 is none.
    pub record_function: u64,
    /// The number that ties forward to backward; -1 is none.
    pub sequence: i64,
    /// PyTorch's `RecordScope`: 0 function, 1 backward function, 7 user scope.
    pub scope: u8,
    /// For a backward op, the id of the node around its forward op; 0 is none.
    pub forward_parent: u64,
    /// For a backward op, the thread of its forward op; 0 is none.
    pub forward_thread: u64,
    /// Who generated the kernel, `triton`; empty for none.
    pub kernel_backend: NameId,
    /// The file of the generated kernel; empty for none.
    pub kernel_file: NameId,
}

/// Nodes in id order, in columns; how they nest is in [`Tree`].
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The id in the trace.
    pub id: Vec<u64>,
    /// What it stands for.
    pub kind: Vec<NodeKind>,
    /// Operator or label.
    pub name: Vec<NameId>,
    /// The operator's schema; empty for labels.
    pub schema: Vec<NameId>,
    /// The host thread, as the profiler counts.
    pub thread: Vec<u64>,
    /// What else was recorded.
    pub noted: Vec<Noted>,
    /// The outermost operator around it, itself included; `None` outside of operators.
    pub top_level: Vec<Option<NodeId>>,
}

impl Nodes {
    pub(super) fn of(trace: &ExecutionTrace, tree: &Tree) -> Nodes {
        let kind: Vec<NodeKind> = (0..tree.len()).map(|row| NodeKind::of(trace, row)).collect();
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
            noted: (0..tree.len()).map(|row| Noted::of(trace, row)).collect(),
            top_level,
        }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Whether the node is an operator.
    #[must_use]
    pub fn is_operator(&self, node: NodeId) -> bool {
        self.kind[node.index()] == NodeKind::Operator
    }

    /// Whether the node is an operator that no other operator is around.
    #[must_use]
    pub fn is_top_level(&self, node: NodeId) -> bool {
        self.top_level[node.index()] == Some(node)
    }
}
