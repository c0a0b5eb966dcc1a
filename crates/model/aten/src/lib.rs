//! What each PyTorch op means: how it is recognised, its shapes, its child ops, and the kernels it launches.
//!
//! ```text
//! execution trace, Kineto with shapes, sweep, query ──> OpCall ──lower──> KernelCall ──cost──> time
//!                                                          └──expand──> child OpCalls
//! ```
//!
//! An [`OpCall`] is one call of one op with its arguments, read by [`from_execution`], [`from_kineto`],
//! [`from_text`] or [`from_query`]. [`lower`](registry::lower) says what the op itself launches,
//! [`expand`](registry::expand) which ops it calls instead, [`outputs`](registry::outputs) what it gives,
//! [`backward`](backward::backward) which ops autograd calls for its gradients, and [`leaves`] all that a call
//! launches with its children. All that is known of an op stands in one file under `ops/`; [`registry`] lists them.
#![forbid(unsafe_code)]

mod argument;
mod axes;
pub mod backward;
mod call;
mod child;
mod compiled;
pub mod derive;
mod dtype;
pub mod fallback;
pub mod fits;
pub mod from_execution;
pub mod from_kineto;
pub mod from_query;
pub mod from_text;
pub mod kernel;
pub mod kernel_name;
pub mod layout;
mod leaves;
pub mod operands;
pub mod ops;
pub mod optimizer;
mod place;
pub mod registry;
pub mod retarget;
mod reuse;
mod schema;
mod work;

pub use call::{Arg, Device, OpCall, Settings, Tensor};
pub use compiled::is_compiled;
pub use dtype::Dtype;
pub use kernel::{Kernel, KernelCall, Operand, Role, Slot};
pub use leaves::{Leaf, leaves};
pub use ops::{Lowered, OpDef};
pub use place::Place;
pub use reuse::{Reuse, reuse_distances};
