//! Definitions of PyTorch ops: names, shapes, child ops, and the kernels that they launch.
//!
//! ```text
//! execution trace, Kineto with shapes, sweep, query ──> OpCall ──lower──> KernelCall ──cost──> time
//!                                                          └──expand──> child OpCalls
//! ```
//!
//! An [`OpCall`] is one call of one op with its arguments, read by [`from_execution`], [`from_kineto`],
//! [`from_text`] or [`from_query`]. An [`OpSet`] holds the known ops, and is passed to all code that interprets ops:
//! [`lower`](OpSet::lower) returns the launches of an op itself, [`expand`](OpSet::expand) the ops that it calls instead,
//! [`outputs`](OpSet::outputs) its results, [`backward`](OpSet::backward) the ops that autograd calls for its
//! gradients, and [`leaves`](OpSet::leaves) all launches of a call and its children. The definition of an op is an
//! [`OpDef`] in a file under `ops/`; its rules get a [`BoundCall`], whose arguments have names.
#![forbid(unsafe_code)]

mod argument;
mod axes;
mod bound_call;
pub mod build_lowering;
mod call;
pub mod channels_last;
mod child_calls;
mod compiled;
pub mod ddp;
pub mod derive;
mod dtype;
mod fallback;
pub mod from_execution;
pub mod from_kineto;
pub mod from_query;
pub mod from_text;
pub mod kernel;
pub mod kernel_name;
mod launching_ops;
pub mod layout;
mod memory_key;
mod op_def;
mod op_set;
pub mod operands;
pub mod ops;
pub mod optimizer;
pub mod retarget;
mod reuse;
mod schema;
pub mod shape_checks;
mod weight;

pub use bound_call::{BoundCall, ShapeRule};
pub use call::{Arg, Device, OpCall, Settings, Tensor};
pub use compiled::is_compiled;
pub use dtype::Dtype;
pub use kernel::{Kernel, KernelCall, Operand, Role, Slot};
pub use launching_ops::Leaf;
pub use memory_key::Place;
pub use op_def::{CallRule, LowerRule, Lowering, OpDef};
pub use op_set::OpSet;
pub use reuse::{Reuse, reuse_distances};
pub use schema::{declared, declared_for};
pub use weight::is_weight;
