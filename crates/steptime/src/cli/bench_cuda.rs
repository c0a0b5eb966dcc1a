//! What can be typed for `steptime bench cuda`.

use clap::{Args, ValueEnum};

/// `steptime bench cuda`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime bench cuda
    steptime bench cuda --op bag --json")]
pub struct BenchCuda {
    /// Only these ops [default: all]
    #[arg(long, value_enum, value_name = "OP", value_delimiter = ',')]
    pub op: Vec<CudaOp>,
    /// Which GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An operator that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CudaOp {
    /// Rows of a table, kept apart, in three orders
    Gather,
    /// Embedding bags over many tables
    Bag,
    /// Their backward passes, with each optimizer
    Backward,
    /// Dot interaction, forward and backward
    Interaction,
    /// Chains of elementwise operations
    Elementwise,
    /// Copies of permuted tensors
    Transpose,
}
