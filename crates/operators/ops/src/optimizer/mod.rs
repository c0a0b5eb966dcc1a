//! Dense optimizers: every parameter of a list of tensors, in one pass over memory, with PyTorch's formulas.
//!
//! An [`Optimizer`] is a [`Rule`] (the update of one parameter, one file each) and the state that the rule keeps.
//! Rows of embedding tables are updated inside of their backward pass instead: see
//! [`embedding::backward`](crate::embedding::backward).

mod adagrad;
mod adam;
mod adamw;
mod error;
mod list;
mod rule;
mod sgd;

pub use adagrad::Adagrad;
pub use adam::Adam;
pub use adamw::AdamW;
pub use error::OptimizerError;
pub use list::Optimizer;
pub use rule::Rule;
pub use sgd::Sgd;
