//! Learning from measured kernels: trees, networks, cross-validation, intervals.

pub mod boost;
pub mod calibrate;
pub mod conformal;
pub mod cross_validation;
pub mod descent;
pub mod error;
pub mod mlp;
pub mod packed;
pub mod score;
pub mod sizes;
pub mod table;
pub mod trees;
