//! Execution graph: the operator that made each tensor, and the operators that used it.
//!
//! ```text
//! ExecutionTrace --tree--> parents, children, nesting
//!                --lifetimes--> tensors and storages, one per life, not per address
//!                --dependencies--> predecessors of each operator, with reasons
//!                --pairing--> the forward operator of each backward function
//!        + Trace --join--> the recorded host operator of each node
//!        + StepGraph --join_step--> the node of each of its ops
//! ```
//!
//! Nodes are identified by [`NodeId`], their position in id order, which is the order in which they began.

mod addresses;
mod alignment;
mod args;
mod dependencies;
mod end_to_end_alignment;
mod fsdp_parameters;
mod graph;
mod ids;
mod join;
mod lifetimes;
mod lists;
mod node;
mod operands;
mod pairing;
mod schema;
mod step;
mod summary;
mod tensor;
mod tree;
mod without_memory;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod recorded;

pub use args::{Arg, ArgRange, Args, Scalar, TensorRange};
pub use dependencies::{Dependencies, DependencyKind};
pub use graph::ExecutionGraph;
pub use ids::{NodeId, StorageId, TensorId};
pub use join::{Join, join};
pub use node::{NodeAttributes, NodeKind, Nodes};
pub use pairing::Pairing;
pub use schema::{Access, Schema, Schemas};
pub use step::{StepJoin, join_step};
pub use summary::Summary;
pub use tensor::{DimRange, Storage, Tensor, Tensors};
pub use tree::{Repairs, Tree};
