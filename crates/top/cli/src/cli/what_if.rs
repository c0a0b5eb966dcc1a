//! `steptime whatif` and `steptime explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use steptime::rewrite::{Blocks, Selection, SetSize};

use super::{Form, HostChoice, OutputFile, Part, Pricing, one_host, times_as_long};

/// `steptime whatif`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime whatif examples/dlrm_default_2048 --batch 8192
    steptime whatif examples/dlrm_default_2048 --cuda-graph --dtype tf32
    steptime whatif examples/resnet50_32 --host-speed 0.5 --json
    steptime whatif examples/dlrm_default_2048 --plan change.toml

A plan is TOML with the same names: batch = 8192, cuda-graph = true, dtype = \"tf32\", host-speed = 0.5, ...
Changes may be given in any order: they are applied in one of their own, a CUDA graph last.")]
pub struct WhatIf {
    /// A recording with an execution trace, or an execution trace
    pub input: PathBuf,
    /// What to change.
    #[command(flatten)]
    pub change: Changes,
    /// The changes, from a file; those of the command line come on top
    #[arg(long, value_name = "FILE.toml")]
    pub plan: Option<PathBuf>,
    /// Where it runs.
    #[command(flatten)]
    pub whom: Whom,
    /// How the answer is printed.
    #[command(flatten)]
    pub form: Form,
    /// Write the step after the change as a Chrome trace
    #[arg(long, value_name = "OUT.json")]
    pub timeline: Option<OutputFile>,
    /// Write the step after the change as a graph: a picture for Graphviz, JSON for scripts, or an execution trace that can be
    /// read again; without a change, the step as it is
    #[arg(long, value_name = "OUT.dot|OUT.json|OUT.et.json")]
    pub graph: Option<OutputFile>,
}

/// What to change.
#[derive(Debug, Clone, Default, Args)]
pub struct Changes {
    /// Samples in a batch
    #[arg(long, value_name = "N", value_parser = samples, allow_negative_numbers = true)]
    pub batch: Option<u64>,
    /// Samples in the batch that was recorded [default: what its recorder wrote]
    #[arg(long, value_name = "N", requires = "batch", value_parser = samples, allow_negative_numbers = true)]
    pub recorded_batch: Option<u64>,
    /// Which dimension of the inputs grows with the batch: 0, or 1 where time comes first [default: inferred, and shown]
    #[arg(long, value_name = "DIM", requires = "batch")]
    pub batch_dim: Option<usize>,
    /// A size of the model: tables[3].rows, tables[*].lookups, tables[*].columns, layers[0].width, counted in the order of
    /// their first use
    #[arg(long, value_name = "PATH=VALUE", value_parser = size)]
    pub set: Vec<SetSize>,
    /// Fuse ops
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,..")]
    pub fuse: Vec<Fuse>,
    /// Fuse these ops alone: named as for --remove
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    pub among: Vec<Selection>,
    /// Operators in the place of PyTorch's, for embedding tables and, of ours, dot interaction
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub operators: Option<Operators>,
    /// The precision of matrix products
    #[arg(long, value_enum)]
    pub dtype: Option<Precision>,
    /// Lay images out with their channels next to one another
    #[arg(long)]
    pub channels_last: bool,
    /// Keep batches in pinned memory and copy the next one on a stream of its own, under the step before
    #[arg(long)]
    pub prefetch_inputs: bool,
    /// Copy each input to the device right before what first takes it
    #[arg(long)]
    pub reorder: bool,
    /// Do not read numbers such as the loss back from the device
    #[arg(long)]
    pub no_sync: bool,
    /// Compute the activations of blocks again in the backward pass: each block by itself, or a row of equal blocks in so
    /// many segments
    #[arg(long, value_name = "SEGMENTS", num_args = 0..=1, require_equals = true, default_missing_value = "0", hide_default_value = true, value_parser = segments)]
    pub checkpoint: Option<usize>,
    /// Blocks that --checkpoint computes again: modules by their paths, `module:Net.down.*,module:Net.up.*`, all so deep inside the model,
    /// `depth:2`, or the model alone, `whole` [default: modules of one class in a row, else stretches that come again]
    #[arg(long, value_name = "module:PATH,..|depth:N|whole")]
    pub blocks: Option<Blocks>,
    /// Leave ops out, with what computes gradients through them: by name, as aten::dropout or aten::*norm*, by number, as
    /// ops[17], or by module, as module:DLRM.bottom
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    pub remove: Vec<Selection>,
    /// Run ops of the forward pass on a stream of their own, and their gradients too: named as for --remove
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    pub on_stream: Vec<Selection>,
    /// Run independent branches on so many streams, side by side
    #[arg(long, value_name = "N")]
    pub streams: Option<usize>,
    /// Add up the gradients of so many batches before each update
    #[arg(long, value_name = "BATCHES", value_parser = batches, allow_negative_numbers = true)]
    pub accumulate: Option<u32>,
    /// Average gradients over so many ranks, each of which runs this step, as DistributedDataParallel does; `predict --world` has more
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub data_parallel: Option<u32>,
    /// Capture what can be captured as a CUDA graph
    #[arg(long)]
    pub cuda_graph: bool,
    /// How many times as long the host takes for everything: 0.5 for one twice as fast
    #[arg(long, value_name = "TIMES", value_parser = times_as_long)]
    pub host_speed: Option<f64>,
}

/// Reads a batch.
fn samples(text: &str) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(samples) if samples > 0 => Ok(samples),
        _ => Err("a batch is a whole number of samples, 1 or more".to_owned()),
    }
}

/// Reads a size of the model and what it becomes.
pub fn size(text: &str) -> Result<SetSize, String> {
    let (path, value) = text.split_once('=').ok_or("it takes PATH=VALUE, as tables[0].rows=1000000")?;
    let path = path.trim().parse().map_err(|error: steptime::rewrite::Error| error.to_string())?;
    let number = value.trim().replace('_', "").parse();
    let to = number.map_err(|_| format!("{value} is no size: it is a whole number, 1 or more"))?;
    Ok(SetSize { path, to })
}

/// Reads which ops are meant.
pub fn selection(text: &str) -> Result<Selection, String> {
    text.parse().map_err(|error: steptime::rewrite::Error| error.to_string())
}

/// Reads how many batches an update is for.
fn batches(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(batches) if batches > 0 => Ok(batches),
        _ => Err("an update is for a whole number of batches, 1 or more".to_owned()),
    }
}

/// Reads how many segments a row of equal blocks becomes; 0 makes each block one.
fn segments(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "how many segments a row of equal blocks becomes is a whole number".to_owned())
}

/// What can be fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fuse {
    /// All embedding bags into one, with their copies
    EmbeddingBags,
    /// The optimizer's ops into one
    Optimizer,
    /// Each chain of elementwise ops into one kernel, as torch.compile of a function makes it
    Elementwise,
    /// Each linear layer and the ReLU that follows into one product
    Linear,
}

/// Whose operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operators {
    /// Those of `steptime.operators`
    Steptime,
    /// FBGEMM's table-batched embeddings, for embedding tables alone
    Fbgemm,
}

/// Precisions of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// 32-bit numbers, multiplied with 10 bits of mantissa
    Tf32,
    /// 16-bit numbers, as under autocast
    Bf16,
    /// The same with 5 bits of exponent, and rows of tables given in it too
    Fp16,
}

/// `steptime explain`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLE
    steptime explain examples/dlrm_default_2048
    steptime explain examples/resnet50_32 --json")]
pub struct Explain {
    /// A recording with an execution trace, or an execution trace
    pub input: PathBuf,
    /// Where it runs.
    #[command(flatten)]
    pub whom: Whom,
    /// How the answer is printed.
    #[command(flatten)]
    pub form: Form,
}

/// Which GPU and host are meant, and which part of the input.
#[derive(Debug, Args)]
pub struct Whom {
    /// Price every kernel for a device, and none as it was measured: a shipped profile's name, or a profile's folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub device: Option<String>,
    /// Where the host's times come from: `own`, `default`, a profile's file, a probe's file, or a recording with a probe
    #[arg(long, value_name = "own|default|FILE", value_parser = one_host)]
    pub host: Option<HostChoice>,
    /// How kernels are priced.
    #[command(flatten)]
    pub pricing: Pricing,
    /// Which step and rank.
    #[command(flatten)]
    pub part: Part,
}
