//! Graph of one execution trace.

mod requested;

use super::args::{ArgRange, Args};
use super::dependencies::Dependencies;
use super::ids::{NodeId, TensorId};
use super::lifetimes::resolve;
use super::node::{NodeKind, Nodes};
use super::operands::Operands;
use super::pairing::Pairing;
use super::schema::{Schema, Schemas};
use super::tensor::Tensors;
use super::tree::Tree;
use super::without_memory;
use crate::collectives::{self, Collective};
use crate::error::Error;
use crate::nesting_limit::check_nesting;
use std::collections::BTreeMap;
use steptime_trace::{ExecutionTrace, NameId, Strings};

/// Operators, the tensors between them, and their dependencies.
#[derive(Clone, Debug, Default)]
pub struct ExecutionGraph {
    /// All names, each once; the ids are those of the trace.
    pub names: Strings,
    /// Nodes in id order.
    pub nodes: Nodes,
    /// Nesting of the nodes.
    pub tree: Tree,
    /// Tensors and storages.
    pub tensors: Tensors,
    /// Inputs and outputs of all nodes.
    pub args: Args,
    /// Dependencies between operators at every level of nesting.
    pub dependencies: Dependencies,
    /// Pairs of forward operators and backward functions.
    pub pairing: Pairing,
    /// Collectives, by the node on which each was recorded.
    pub collectives: BTreeMap<NodeId, Collective>,
    /// Nodes that wait for a collective, by the collective's own node, if the trace has both.
    pub awaited: BTreeMap<NodeId, NodeId>,
    /// Whether tensors had no memory, as on the `meta` device or under `FakeTensorMode`: which tensors share storage is
    /// known from schemas only, and the kernel launches are not recorded.
    pub fake: bool,
    schemas: Schemas,
    inputs: Vec<ArgRange>,
    outputs: Vec<ArgRange>,
}

impl ExecutionGraph {
    /// Builds the graph of a trace from an untrusted file, if its ops nest no deeper than [`DEEPEST`](crate::DEEPEST).
    ///
    /// # Errors
    /// If they nest deeper.
    pub fn read(trace: &ExecutionTrace) -> Result<ExecutionGraph, Error> {
        let tree = nested(trace);
        check_nesting(tree.depth())?;
        Ok(ExecutionGraph::with_tree(trace, tree))
    }

    /// Builds the graph, for any nesting depth. Nodes out of order are counted in [`Tree::repairs`].
    #[must_use]
    pub fn new(trace: &ExecutionTrace) -> ExecutionGraph {
        ExecutionGraph::with_tree(trace, nested(trace))
    }

    fn with_tree(trace: &ExecutionTrace, tree: Tree) -> ExecutionGraph {
        let rows = &trace.nodes;
        let nodes = Nodes::from_trace(trace, &tree);
        let schemas = Schemas::parse(&trace.names, &rows.op_schema);
        let pairing = Pairing::find(trace, &nodes);
        let operands = resolve(trace, &tree, &schemas, &pairing);
        let dependencies = Dependencies::find(&nodes, &tree, &schemas, &operands);
        let Operands { tensors, args, inputs, outputs } = operands;
        let mut graph = ExecutionGraph {
            names: trace.names.clone(),
            nodes,
            tree,
            tensors,
            args,
            dependencies,
            pairing,
            collectives: collectives::by_node(trace),
            awaited: collectives::arguments::awaited(trace),
            fake: without_memory::is_fake(trace),
            schemas,
            inputs,
            outputs,
        };
        let requested = requested::find(trace, &graph);
        graph.collectives.extend(requested);
        graph
    }

    /// Returns the name of an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }

    /// Returns the name of a node.
    ///
    /// # Panics
    /// If the node is of another graph and out of bounds.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        self.names.get(self.nodes.name[node.index()])
    }

    /// Returns the inputs of a node, one per declared argument, for [`Args::get`].
    ///
    /// # Panics
    /// If the node is of another graph and out of bounds.
    #[must_use]
    pub fn inputs(&self, node: NodeId) -> ArgRange {
        self.inputs[node.index()]
    }

    /// Returns the outputs of a node, one per return, for [`Args::get`].
    ///
    /// # Panics
    /// If the node is of another graph and out of bounds.
    #[must_use]
    pub fn outputs(&self, node: NodeId) -> ArgRange {
        self.outputs[node.index()]
    }

    /// Returns the input tensors of a node, each with the position of its argument.
    pub fn input_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.inputs(node))
    }

    /// Returns the output tensors of a node, each with the position of its return.
    pub fn output_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.outputs(node))
    }

    /// Returns the schema of a node, with the memory that it shares or writes; `None` if it has none.
    ///
    /// # Panics
    /// If the node is of another graph and out of bounds.
    #[must_use]
    pub fn schema(&self, node: NodeId) -> Option<&Schema> {
        self.schemas.get(self.nodes.schema[node.index()])
    }

    /// Returns all nodes, in id order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + Clone + use<> {
        (0..self.nodes.len()).map(NodeId::at)
    }

    /// Returns the operators that are not inside another operator, in id order.
    pub fn top_level(&self) -> impl Iterator<Item = NodeId> {
        self.ids().filter(|&node| self.nodes.is_top_level(node))
    }
}

fn nested(trace: &ExecutionTrace) -> Tree {
    let is_process = |row| NodeKind::from_row(trace, row) == NodeKind::Process;
    Tree::new(&trace.nodes.id, &trace.nodes.parent, is_process)
}
