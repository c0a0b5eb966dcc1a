//! The whole graph of one execution trace.

use super::args::{ArgRange, Args};
use super::dependencies::Dependencies;
use super::ids::{NodeId, TensorId};
use super::lifetimes::resolve;
use super::memory;
use super::node::{NodeKind, Nodes};
use super::operands::Operands;
use super::pairing::Pairing;
use super::schema::{Schema, Schemas};
use super::tensor::Tensors;
use super::tree::Tree;
use crate::collectives::{self, Collective};
use crate::error::Error;
use crate::nesting::check_nesting;
use std::collections::BTreeMap;
use steptime_trace::{ExecutionTrace, NameId, Strings};

/// Operators, the tensors between them, and what must come before what.
#[derive(Clone, Debug, Default)]
pub struct ExecutionGraph {
    /// Every name, once; the ids are those of the trace.
    pub names: Strings,
    /// The nodes in id order.
    pub nodes: Nodes,
    /// How they nest.
    pub tree: Tree,
    /// Tensors and storages.
    pub tensors: Tensors,
    /// Inputs and outputs of all nodes.
    pub args: Args,
    /// What must come before what, among operators at every level of nesting.
    pub dependencies: Dependencies,
    /// Forward operators and backward functions.
    pub pairing: Pairing,
    /// What nodes do together with other ranks.
    pub collectives: BTreeMap<NodeId, Collective>,
    /// The nodes that wait for a collective, by the collective's own node, where the trace says so.
    pub awaited: BTreeMap<NodeId, NodeId>,
    /// Whether tensors had no memory, as on the `meta` device or under `FakeTensorMode`: which of them share one is
    /// known by schemas only, and what kernels would call is not recorded.
    pub fake: bool,
    schemas: Schemas,
    inputs: Vec<ArgRange>,
    outputs: Vec<ArgRange>,
}

impl ExecutionGraph {
    /// Builds the graph of a trace that others wrote, whose ops nest no deeper than [`DEEPEST`](crate::DEEPEST).
    ///
    /// # Errors
    /// Where they nest deeper.
    pub fn read(trace: &ExecutionTrace) -> Result<ExecutionGraph, Error> {
        let tree = nested(trace);
        check_nesting(tree.depth())?;
        Ok(ExecutionGraph::of(trace, tree))
    }

    /// Builds the graph, however deep its ops nest. What is out of order is counted in [`Tree::repairs`].
    #[must_use]
    pub fn new(trace: &ExecutionTrace) -> ExecutionGraph {
        ExecutionGraph::of(trace, nested(trace))
    }

    fn of(trace: &ExecutionTrace, tree: Tree) -> ExecutionGraph {
        let rows = &trace.nodes;
        let nodes = Nodes::of(trace, &tree);
        let schemas = Schemas::parse(&trace.names, &rows.op_schema);
        let pairing = Pairing::of(trace, &nodes);
        let operands = resolve(trace, &tree, &schemas, &pairing);
        let dependencies = Dependencies::of(&nodes, &tree, &schemas, &operands);
        let Operands { tensors, args, inputs, outputs } = operands;
        let mut graph = ExecutionGraph {
            names: trace.names.clone(),
            nodes,
            tree,
            tensors,
            args,
            dependencies,
            pairing,
            collectives: collectives::of_nodes(trace),
            awaited: collectives::arguments::awaited(trace),
            fake: memory::is_fake(trace),
            schemas,
            inputs,
            outputs,
        };
        let requested = collectives::requested::find(trace, &graph);
        graph.collectives.extend(requested);
        graph
    }

    /// The name behind an id.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }

    /// The name of a node.
    ///
    /// # Panics
    /// When the node is of another graph and out of bounds.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        self.names.get(self.nodes.name[node.index()])
    }

    /// What a node takes, one a declared argument, for [`Args::get`].
    ///
    /// # Panics
    /// When the node is of another graph and out of bounds.
    #[must_use]
    pub fn inputs(&self, node: NodeId) -> ArgRange {
        self.inputs[node.index()]
    }

    /// What a node gives, one a return, for [`Args::get`].
    ///
    /// # Panics
    /// When the node is of another graph and out of bounds.
    #[must_use]
    pub fn outputs(&self, node: NodeId) -> ArgRange {
        self.outputs[node.index()]
    }

    /// The tensors a node takes, each with the position of its argument.
    pub fn input_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.inputs(node))
    }

    /// The tensors a node gives, each with the position of its return.
    pub fn output_tensors(&self, node: NodeId) -> impl Iterator<Item = (usize, TensorId)> {
        self.args.tensors(self.outputs(node))
    }

    /// What a node's schema says about memory; `None` when it has none.
    ///
    /// # Panics
    /// When the node is of another graph and out of bounds.
    #[must_use]
    pub fn schema(&self, node: NodeId) -> Option<&Schema> {
        self.schemas.get(self.nodes.schema[node.index()])
    }

    /// All nodes, in id order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + Clone + use<> {
        (0..self.nodes.len()).map(NodeId::at)
    }

    /// The operators that no other operator is around, in id order.
    pub fn top_level(&self) -> impl Iterator<Item = NodeId> {
        self.ids().filter(|&node| self.nodes.is_top_level(node))
    }
}

fn nested(trace: &ExecutionTrace) -> Tree {
    let is_process = |row| NodeKind::of(trace, row) == NodeKind::Process;
    Tree::new(&trace.nodes.id, &trace.nodes.parent, is_process)
}
