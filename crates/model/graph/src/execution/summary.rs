//! Counts of the contents of a graph.

use super::graph::ExecutionGraph;
use super::node::NodeKind;
use std::fmt;

/// Counts of everything in an [`ExecutionGraph`], for printing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Nodes of any kind.
    pub nodes: usize,
    /// Operators at every level of nesting.
    pub operators: usize,
    /// Operators that are not inside another operator.
    pub top_level: usize,
    /// Number of tensors.
    pub tensors: usize,
    /// Number of storages.
    pub storages: usize,
    /// Dependencies among operators at every level of nesting.
    pub dependencies: usize,
    /// Backward functions with a known forward operator.
    pub paired: usize,
    /// Backward functions with a sequence number that no forward operator has.
    pub unpaired: usize,
    /// Nodes whose parent had to be repaired.
    pub repairs: usize,
}

impl ExecutionGraph {
    /// Counts the contents of the graph.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let repairs = &self.tree.repairs;
        Summary {
            nodes: self.nodes.len(),
            operators: self.nodes.kind.iter().filter(|&&kind| kind == NodeKind::Operator).count(),
            top_level: self.top_level().count(),
            tensors: self.tensors.len(),
            storages: self.tensors.storages().len(),
            dependencies: self.dependencies.len(),
            paired: self.pairing.paired,
            unpaired: self.pairing.unpaired,
            repairs: repairs.duplicate_ids + repairs.missing_parents + repairs.late_parents,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} nodes, {} operators, {} of them top-level, {} tensors on {} storages, {} dependencies, \
             {} backward functions paired, {} not",
            self.nodes,
            self.operators,
            self.top_level,
            self.tensors,
            self.storages,
            self.dependencies,
            self.paired,
            self.unpaired,
        )?;
        match self.repairs {
            0 => Ok(()),
            repairs => write!(out, ", {repairs} repaired"),
        }
    }
}
