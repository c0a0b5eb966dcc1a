//! Execution traces: the ops of one step with their tensors, without times.

mod attributes;
mod builder;
mod linked;
mod node;
mod nodes;
mod schema;
mod trace;
mod types;
mod values;

pub use linked::LinkedActivity;
pub use nodes::{Node, Nodes};
pub use schema::Schema;
pub use trace::ExecutionTrace;
pub use values::{DimRange, Tensor, TensorIdx, Value, ValueRange, Values};

pub(crate) use builder::Builder;
