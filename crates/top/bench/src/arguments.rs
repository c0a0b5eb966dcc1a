//! The command line.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use steptime_bench::{Init, TypedSizes, cpu, cuda};
use steptime_ops::Isa;

use crate::product::Product;

/// Measures the operators on this machine
#[derive(Debug, Parser)]
#[command(name = "steptime-bench", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the CPU operators: time, minimum bytes moved, arithmetic intensity, share of this machine's limits
    Cpu(BenchCpu),
    /// Measure the GPU operators: time, minimum bytes moved, share of this GPU's own copy rate, launch geometry
    Cuda(BenchCuda),
    /// Show the tiles of a matrix product for registers, caches and threads, and the bytes read at each level
    Gemm(Gemm),
}

/// `steptime-bench cpu`.
#[derive(Debug, Args)]
#[command(after_help = help(
    "EXAMPLE
    steptime-bench cpu
    steptime-bench cpu --op interaction,gemm --threads 1 --json
    steptime-bench cpu --op gather --shape E=65536,D=768,B=32,S=128 --verify --init zipf:1.05 --time",
    cpu::ALL.map(|benchmark| (benchmark.name, benchmark.sizes)),
))]
pub struct BenchCpu {
    /// Only these ops [default: all]
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = cpu_op())]
    pub op: Vec<&'static cpu::Benchmark>,
    /// One size, instead of those of three DLRMs and a sweep; needs --op
    #[arg(long, value_name = "KEY=N,...", requires = "op")]
    pub shape: Option<TypedSizes>,
    /// Distribution of indices, drawn again for each call: `uniform`, or `zipf:A`
    #[arg(long, value_name = "uniform|zipf:A", default_value = "uniform")]
    pub init: Init,
    /// Compare results with the plain reference; exit with 1 if they differ
    #[arg(long)]
    pub verify: bool,
    /// Measure times: the default, unless --verify is given
    #[arg(long)]
    pub time: bool,
    /// Number of threads; 0 for as many as the machine has
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// The instruction set to use [default: the widest of this machine]
    #[arg(long, value_name = "scalar|neon|avx2|avx512")]
    pub isa: Option<Isa>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `steptime-bench cuda`.
#[derive(Debug, Args)]
#[command(after_help = help(
    "EXAMPLE
    steptime-bench cuda
    steptime-bench cuda --op bag --json
    steptime-bench cuda --verify
    steptime-bench cuda --op backward --shape T=8,E=4000000,D=96,L=20,B=4096 --init zipf:1.05",
    cuda::ALL.map(|benchmark| (benchmark.name, benchmark.sizes)),
))]
pub struct BenchCuda {
    /// Only these ops [default: all]
    #[arg(long, value_name = "OP", value_delimiter = ',', value_parser = cuda_op())]
    pub op: Vec<&'static cuda::Benchmark>,
    /// One size, instead of those at which other libraries were measured; needs --op
    #[arg(long, value_name = "KEY=N,...", requires = "op")]
    pub shape: Option<TypedSizes>,
    /// Distribution of indices: `uniform`, or `zipf:A` as numpy draws them, modulo E [default: uniform, the largest case
    /// also by Zipf's law]
    #[arg(long, value_name = "uniform|zipf:A")]
    pub init: Option<Init>,
    /// Compare results with those of the CPU operators, large ones on a sample; exit with 1 if they differ
    #[arg(long)]
    pub verify: bool,
    /// Measure times: the default, unless --verify is given
    #[arg(long)]
    pub time: bool,
    /// Number of the GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `steptime-bench gemm`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime-bench gemm 2048x512x512
    steptime-bench gemm 4096x1024x13 --isa avx2 --json")]
pub struct Gemm {
    /// Rows of C, columns of C, and terms of each sum
    #[arg(value_name = "MxNxK")]
    pub size: Product,
    /// The instruction set to plan for [default: the widest of this machine]
    #[arg(long, value_name = "scalar|neon|avx2|avx512")]
    pub isa: Option<Isa>,
    /// Maximum number of threads [default: as many as the process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Builds the help after the options: examples, and the sizes of each op.
fn help<const N: usize>(examples: &str, sizes: [(&str, &str); N]) -> String {
    let lines = sizes.map(|(op, sizes)| format!("    {op:<12} {sizes}")).join("\n");
    format!("{examples}\n\nThe sizes of --shape, each with a usual value as its default:\n{lines}")
}

/// Returns the parser of CPU benchmark names.
fn cpu_op() -> impl TypedValueParser<Value = &'static cpu::Benchmark> {
    named(cpu::ALL.map(|of| (of.name, of.about, of)))
}

/// Returns the parser of GPU benchmark names.
fn cuda_op() -> impl TypedValueParser<Value = &'static cuda::Benchmark> {
    named(cuda::ALL.map(|of| (of.name, of.about, of)))
}

/// Returns a parser from the given names to their values.
fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = all.map(|(name, about, _)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names).try_map(move |typed| {
        let found = all.iter().find(|(name, ..)| *name == typed);
        found.map(|&(.., of)| of).ok_or_else(|| format!("there is no op {typed}"))
    })
}
