//! Order of operators, from the memory that they share.

use super::ids::{NodeId, StorageId, TensorId};
use super::lists::Lists;
use super::node::Nodes;
use super::operands::Operands;
use super::schema::{Access, Schema, Schemas};
use super::tree::Tree;

/// Reason why one operator must come before another. If there are several, the first of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DependencyKind {
    /// The later one reads memory that the earlier one wrote.
    #[default]
    ReadAfterWrite,
    /// Both write the same memory.
    WriteAfterWrite,
    /// The later one overwrites memory that the earlier one reads.
    WriteAfterRead,
    /// The later one takes a tensor that the earlier one made, but does not read its contents: a view of it.
    Handle,
}

/// Predecessors of each node; they always come before it in id order.
///
/// An operator represents all operators inside it, so it depends on none inside or around it. Readers
/// depend on the outermost operator that wrote; a dependency of an inner operator is not necessarily repeated on the
/// operators around it, see [`Dependencies::lift`]. Views neither read nor write. Of operators that ran at the
/// same time on several threads, those that ended last count as writers.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    edges: Lists<(NodeId, DependencyKind)>,
    nodes: usize,
}

impl Dependencies {
    pub(super) fn find(nodes: &Nodes, tree: &Tree, schemas: &Schemas, operands: &Operands) -> Dependencies {
        let storages = operands.tensors.storages().len();
        let mut found = DependencyFinder {
            nodes,
            tree,
            schemas,
            operands,
            edges: Vec::new(),
            writer: vec![None; storages],
            readers: vec![Vec::new(); storages],
        };
        for node in (0..nodes.len()).map(NodeId::at) {
            if nodes.is_operator(node) {
                found.begin(node);
            }
            for ended in tree.ending(node).filter(|&ended| nodes.is_operator(ended)) {
                found.end(ended);
            }
        }
        Dependencies::from_edges(nodes.len(), found.edges)
    }

    fn from_edges(nodes: usize, mut edges: Vec<Edge>) -> Dependencies {
        edges.sort_unstable();
        edges.dedup_by_key(|&mut (successor, predecessor, _)| (successor, predecessor));
        let pairs =
            edges.iter().map(|&(successor, predecessor, kind)| (successor.index(), (predecessor, kind)));
        Dependencies { edges: Lists::from_pairs(nodes, pairs), nodes }
    }

    /// Returns the predecessors of a node in id order, each with the reason.
    #[must_use]
    pub fn predecessors(&self, node: NodeId) -> &[(NodeId, DependencyKind)] {
        self.edges.get(node.index())
    }

    /// Returns the number of dependencies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edges.items().len()
    }

    /// Whether there are no dependencies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edges.items().is_empty()
    }

    /// Returns the number of dependencies of one kind.
    #[must_use]
    pub fn count(&self, kind: DependencyKind) -> usize {
        self.edges.items().iter().filter(|&&(_, other)| other == kind).count()
    }

    /// Returns all dependencies as `(predecessor, successor, kind)`, successors in id order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId, DependencyKind)> {
        let nodes = (0..self.nodes).map(NodeId::at);
        nodes.flat_map(|node| self.predecessors(node).iter().map(move |&(before, kind)| (before, node, kind)))
    }

    /// Returns the same dependencies between the nodes that `to` maps them to, each once. Drops dependencies within one node,
    /// and dependencies against the id order, which occur only between concurrent threads.
    #[must_use]
    pub fn map(&self, to: impl Fn(NodeId) -> Option<NodeId>) -> Dependencies {
        let mapped = self.iter().filter_map(|(before, after, kind)| Some((to(after)?, to(before)?, kind)));
        Dependencies::from_edges(self.nodes, mapped.filter(|(after, before, _)| before < after).collect())
    }

    /// Returns the same dependencies between top-level operators.
    #[must_use]
    pub fn lift(&self, nodes: &Nodes) -> Dependencies {
        self.map(|node| nodes.top_level.get(node.index()).copied().flatten())
    }
}

/// Successor, predecessor, reason.
type Edge = (NodeId, NodeId, DependencyKind);

struct DependencyFinder<'a> {
    nodes: &'a Nodes,
    tree: &'a Tree,
    schemas: &'a Schemas,
    operands: &'a Operands,
    edges: Vec<Edge>,
    /// Last writer of each storage.
    writer: Vec<Option<NodeId>>,
    /// Readers of each storage since its last write.
    readers: Vec<Vec<NodeId>>,
}

impl<'a> DependencyFinder<'a> {
    fn begin(&mut self, node: NodeId) {
        let access = self.access(node);
        for (position, tensor) in self.operands.input_tensors(node) {
            let tensor = self.operands.tensors.get(tensor);
            self.edge(tensor.producer, node, DependencyKind::Handle);
            if access(position) != Access::View {
                self.edge(self.writer[tensor.storage.index()], node, DependencyKind::ReadAfterWrite);
            }
        }
    }

    fn end(&mut self, node: NodeId) {
        let mut written = Vec::new();
        let mut read = Vec::new();
        let access = self.access(node);
        for (position, tensor) in self.operands.input_tensors(node) {
            match access(position) {
                Access::View => {}
                Access::Plain => read.push(self.storage(tensor)),
                Access::Write => written.push(self.storage(tensor)),
            }
        }
        read.sort_unstable();
        let schema = self.schema(node);
        for (position, tensor) in self.operands.output_tensors(node) {
            let storage = self.storage(tensor);
            let writes = match schema {
                // An input returned unchanged, or a view that the schema does not declare.
                Some(schema) => {
                    schema.output(position) == Access::Plain && read.binary_search(&storage).is_err()
                }
                None => true,
            };
            if writes {
                written.push(storage);
            }
        }
        written.sort_unstable();
        written.dedup();
        for &storage in &written {
            self.write(node, storage);
        }
        read.dedup();
        for storage in read {
            if written.binary_search(&storage).is_err() {
                self.read(node, storage);
            }
        }
    }

    fn write(&mut self, node: NodeId, storage: StorageId) {
        let before = self.writer[storage.index()].replace(node);
        self.edge(before, node, DependencyKind::WriteAfterWrite);
        for reader in std::mem::take(&mut self.readers[storage.index()]) {
            self.edge(Some(reader), node, DependencyKind::WriteAfterRead);
        }
    }

    /// Adds a reader, which replaces readers inside it.
    fn read(&mut self, node: NodeId, storage: StorageId) {
        let readers = &mut self.readers[storage.index()];
        while readers.pop_if(|inner| self.tree.encloses(node, *inner)).is_some() {}
        readers.push(node);
    }

    fn edge(&mut self, before: Option<NodeId>, after: NodeId, kind: DependencyKind) {
        if let Some(before) = before
            && before < after
            && self.nodes.is_operator(before)
            && !self.tree.nested(before, after)
        {
            self.edges.push((after, before, kind));
        }
    }

    fn storage(&self, tensor: TensorId) -> StorageId {
        self.operands.tensors.get(tensor).storage
    }

    fn schema(&self, node: NodeId) -> Option<&'a Schema> {
        self.schemas.get(self.nodes.schema[node.index()])
    }

    /// Returns the access of an operator to each argument. Kernels without a schema do not declare writes: if they
    /// return nothing, they count as writing all arguments.
    fn access(&self, node: NodeId) -> impl Fn(usize) -> Access + use<'a> {
        let schema = self.schema(node);
        let otherwise = match self.operands.output_tensors(node).next() {
            Some(_) => Access::Plain,
            None => Access::Write,
        };
        move |position| schema.map_or(otherwise, |schema| schema.argument(position))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Node, graph};
    use super::DependencyKind::{Handle, ReadAfterWrite, WriteAfterRead, WriteAfterWrite};
    use super::*;

    fn edges(dependencies: &Dependencies) -> Vec<(u32, u32, DependencyKind)> {
        dependencies.iter().map(|(before, after, kind)| (before.0, after.0, kind)).collect()
    }

    #[test]
    fn reads_and_writes_are_ordered() {
        let graph = graph(&[
            Node::op(3, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 12 13 4"),
            Node::op(4, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 12 13 4").outputs("f 14 15 4"),
            Node::op(5, 2, "aten::add_(Tensor(a!) x) -> Tensor(a!)").inputs("f 10 11 4").outputs("f 10 11 4"),
            Node::op(6, 2, "aten::zero_(Tensor(a!) x) -> Tensor(a!)")
                .inputs("f 12 13 4")
                .outputs("f 12 13 4"),
        ]);
        let expected =
            [(2, 3, ReadAfterWrite), (2, 4, WriteAfterRead), (2, 5, ReadAfterWrite), (3, 5, WriteAfterRead)];
        assert_eq!(edges(&graph.dependencies), expected);
    }

    #[test]
    fn a_write_through_a_view_is_seen_and_the_view_comes_first() {
        let graph = graph(&[
            Node::op(3, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 8 9 4").outputs("f 10 11 4"),
            Node::op(4, 2, "aten::view(Tensor(a) x) -> Tensor(a)").inputs("f 10 11 4").outputs("f 12 11 2,2"),
            Node::op(5, 2, "aten::add_(Tensor(a!) x) -> Tensor(a!)")
                .inputs("f 12 11 2,2")
                .outputs("f 12 11 2,2"),
            Node::op(6, 2, "aten::relu(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 14 15 4"),
        ]);
        let expected =
            [(2, 3, Handle), (2, 4, ReadAfterWrite), (3, 4, Handle), (2, 5, Handle), (4, 5, ReadAfterWrite)];
        assert_eq!(edges(&graph.dependencies), expected);
    }

    #[test]
    fn an_outer_operator_stands_for_the_inner_ones() {
        let graph = graph(&[
            Node::op(3, 2, "aten::ones() -> Tensor").outputs("f 10 11 4"),
            Node::op(4, 3, "aten::empty() -> Tensor").outputs("f 10 11 4"),
            Node::op(5, 3, "aten::fill_(Tensor(a!) x) -> Tensor(a!)")
                .inputs("f 10 11 4")
                .outputs("f 10 11 4"),
            Node::op(6, 2, "aten::mul(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 12 13 4"),
            Node::op(7, 6, "aten::neg(Tensor x) -> Tensor").inputs("f 10 11 4").outputs("f 12 13 4"),
        ]);
        let inner = edges(&graph.dependencies);
        assert!(inner.contains(&(3, 4, ReadAfterWrite)), "{inner:?}");
        assert!(inner.contains(&(2, 6, ReadAfterWrite)), "{inner:?}");
        assert_eq!(edges(&graph.dependencies.lift(&graph.nodes)), [(2, 5, ReadAfterWrite)]);
    }

    #[test]
    fn without_a_schema_outputs_are_written() {
        let graph = graph(&[
            Node::op(3, 2, "").named("record_param_comms").inputs("f 10 11 4").outputs("f 10 11 4"),
            Node::op(4, 2, "").named("record_param_comms").inputs("f 10 11 4").outputs("f 12 13 4"),
            Node::op(5, 2, "").named("record_param_comms").outputs("f 12 13 4"),
        ]);
        let found = edges(&graph.dependencies);
        assert_eq!(found, [(2, 3, ReadAfterWrite)]);
        assert_eq!(graph.dependencies.count(WriteAfterWrite), 0);
    }
}
