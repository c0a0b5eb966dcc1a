//! What can be typed for `steptime bench` and `steptime gemm`.

use std::fmt;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use steptime::ops::Isa;

use super::BenchCuda;

/// `steptime bench`.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Measure the CPU operators: time, bytes that must move, arithmetic intensity, share of what this machine can do
    Cpu(BenchCpu),
    /// Measure the GPU operators: time, bytes that must move, share of this GPU's own copy rate, launch geometry
    Cuda(BenchCuda),
}

/// `steptime bench cpu`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime bench cpu
    steptime bench cpu --op interaction,gemm --threads 1 --json
    steptime bench cpu --op gather --shape E=65536,D=768,B=32,S=128 --verify --init zipf:1.05 --time

The sizes of --shape, each with a usual value where it is left out:
    gather       E rows, D columns, B x S lookups
    bag          T tables of E rows and D columns, B bags of L lookups
    backward     as bag, once for each optimizer
    gemm         [M, K] times [K, N]
    linear       B samples, K inputs, N outputs
    interaction  B samples of F vectors of D floats
    elementwise  B rows of D columns
    transpose    M rows of N columns")]
pub struct BenchCpu {
    /// Only these ops [default: all]
    #[arg(long, value_enum, value_name = "OP", value_delimiter = ',')]
    pub op: Vec<Op>,
    /// One size, instead of those of three DLRMs and of a sweep; needs --op
    #[arg(long, value_name = "KEY=N,...", requires = "op")]
    pub shape: Option<Shape>,
    /// How indices are drawn, anew for each call: `uniform`, or `zipf:A`
    #[arg(long, value_name = "uniform|zipf:A", default_value = "uniform")]
    pub init: Init,
    /// Compare results with the plain reference; exit with 1 where they differ
    #[arg(long)]
    pub verify: bool,
    /// Measure times: the default, unless --verify is given
    #[arg(long)]
    pub time: bool,
    /// Threads; 0 is as many as the machine has
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// The instructions to use [default: the widest there are]
    #[arg(long, value_name = "scalar|avx2|avx512")]
    pub isa: Option<Isa>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An operator that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    /// Rows of a table, kept apart
    Gather,
    /// Embedding bags over many tables
    Bag,
    /// The backward pass of bags, fused with each optimizer
    Backward,
    /// Matrix products
    Gemm,
    /// Linear layers with activation, forward and gradients
    Linear,
    /// Dot interaction, forward and backward
    Interaction,
    /// Chains of elementwise operations
    Elementwise,
    /// Transposes
    Transpose,
}

/// `steptime gemm`.
#[derive(Debug, Subcommand)]
pub enum Gemm {
    /// Show how a matrix product is cut for registers and caches, and what each level reads
    #[command(after_help = "EXAMPLE
    steptime gemm plan 2048x512x512
    steptime gemm plan 4096x1024x13 --isa avx2 --json")]
    Plan {
        /// Rows of C, columns of C, and terms of each sum
        #[arg(value_name = "MxNxK")]
        size: Product,
        /// The instructions to plan for [default: the widest of this machine]
        #[arg(long, value_name = "scalar|avx2|avx512")]
        isa: Option<Isa>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Sizes by their letters.
#[derive(Debug, Clone)]
pub struct Shape(pub Vec<(String, usize)>);

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let one = |part: &str| {
            let (key, number) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is no size: write E=65536"))?;
            Ok((key.trim().to_owned(), size(number)?))
        };
        text.split(',').map(one).collect::<Result<_, String>>().map(Shape)
    }
}

/// How indices are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Every row as often.
    Uniform,
    /// The n-th most frequent row `n^-A` as often as the first.
    Zipf(f64),
}

impl FromStr for Init {
    type Err = String;

    fn from_str(text: &str) -> Result<Init, String> {
        if text == "uniform" {
            return Ok(Init::Uniform);
        }
        let exponent = text.strip_prefix("zipf:").and_then(|number| number.parse::<f64>().ok());
        match exponent.filter(|exponent| (0.0..=8.0).contains(exponent)) {
            Some(exponent) => Ok(Init::Zipf(exponent)),
            None => Err("give uniform, or zipf: with an exponent between 0 and 8, as in zipf:1.05".into()),
        }
    }
}

impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Init::Uniform => f.write_str("uniform"),
            Init::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

/// The sizes of a matrix product.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
}

impl FromStr for Product {
    type Err = String;

    fn from_str(text: &str) -> Result<Product, String> {
        let sizes = text.split(['x', 'X']).map(size).collect::<Result<Vec<_>, _>>()?;
        match sizes[..] {
            [m, n, k] => Ok(Product { m, n, k }),
            _ => Err("give rows, columns and terms, as in 2048x512x512".into()),
        }
    }
}

/// A size that nothing computed from overflows.
fn size(text: &str) -> Result<usize, String> {
    let number = text.trim().parse::<u32>().ok().filter(|&number| number > 0);
    number
        .map(|number| number as usize)
        .ok_or_else(|| format!("{text:?} is no size: it is 1 to {}", u32::MAX))
}
