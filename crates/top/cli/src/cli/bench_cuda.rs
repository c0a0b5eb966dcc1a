//! What can be typed for `steptime bench cuda`.

use clap::{Args, ValueEnum};

use super::bench::{Init, Shape};

/// `steptime bench cuda`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime bench cuda
    steptime bench cuda --op bag --json
    steptime bench cuda --op backward --shape T=8,E=4000000,D=96,L=20,B=4096 --init zipf:1.05

The sizes of --shape, each with a usual value where it is left out:
    gather       E rows, D columns, N lookups
    bag          T tables of E rows and D columns, B bags of L lookups
    backward     as bag, once for each optimizer
    interaction  B samples of F vectors of D floats
    elementwise  B rows of D columns
    transpose    M rows of N columns
    gemm         [M, K] times [K, N]")]
pub struct BenchCuda {
    /// Only these ops [default: all]
    #[arg(long, value_enum, value_name = "OP", value_delimiter = ',')]
    pub op: Vec<CudaOp>,
    /// One size, instead of those at which other libraries were measured; needs --op
    #[arg(long, value_name = "KEY=N,...", requires = "op")]
    pub shape: Option<Shape>,
    /// How indices are drawn: `uniform`, or `zipf:A` as numpy draws them, modulo E [default: uniform, the largest case
    /// also by Zipf's law]
    #[arg(long, value_name = "uniform|zipf:A")]
    pub init: Option<Init>,
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
    /// Matrix products through cuBLASLt
    Gemm,
}
