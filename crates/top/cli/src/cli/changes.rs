//! Changes to a step.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Deserializer};
use steptime_rewrite::{BatchDims, Blocks, Checkpoint, ResizeBatch, Selection, SetSize};

use super::times_as_long;
use crate::cli::checked;

/// Changes to a step.
#[derive(Debug, Clone, Default, Args, Deserialize)]
pub struct Changes {
    /// New batch size, in samples
    #[arg(long, value_name = "N", value_parser = samples, allow_negative_numbers = true)]
    pub batch: Option<u64>,
    /// Samples in the recorded batch [default: as noted in the recording]
    #[arg(long, value_name = "N", requires = "batch", value_parser = samples, allow_negative_numbers = true)]
    pub recorded_batch: Option<u64>,
    /// Batch dimension of the inputs: 0, or 1 for time-major inputs [default: inferred, and shown]
    #[arg(long, value_name = "DIM", requires = "batch")]
    pub batch_dim: Option<usize>,
    /// New value of a size of the model: tables[3].rows, tables[*].lookups, tables[*].columns, layers[0].width; tables
    /// and layers are numbered in the order of their first use
    #[arg(long, value_name = "PATH=VALUE", value_parser = size)]
    #[serde(deserialize_with = "sizes")]
    pub set: Vec<SetSize>,
    /// Fuse ops
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,..")]
    pub fuse: Vec<Fuse>,
    /// Fuse only these ops, named as for --remove
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    #[serde(deserialize_with = "selections")]
    pub among: Vec<Selection>,
    /// Replace PyTorch's operators by others: `fbgemm` (embedding tables) or `steptime` (also dot interaction)
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub operators: Option<Operators>,
    /// Precision of matrix products
    #[arg(long, value_enum)]
    pub dtype: Option<Precision>,
    /// Store images in the channels-last memory format
    #[arg(long)]
    pub channels_last: bool,
    /// Keep batches in pinned memory, and copy the next one on its own stream during the step before
    #[arg(long)]
    pub prefetch_inputs: bool,
    /// Copy each input to the device right before its first use
    #[arg(long)]
    pub reorder: bool,
    /// Do not copy scalars such as the loss back from the device
    #[arg(long)]
    pub no_sync: bool,
    /// Recompute the activations of blocks in the backward pass: each block by itself, or each series of
    /// equal blocks in SEGMENTS segments
    #[arg(long, value_name = "SEGMENTS", num_args = 0..=1, require_equals = true, default_missing_value = "0", hide_default_value = true, value_parser = segments)]
    #[serde(deserialize_with = "optional_segments")]
    pub checkpoint: Option<usize>,
    /// Blocks that --checkpoint recomputes: modules by path (`module:Net.down.*,module:Net.up.*`), all modules at a depth (`depth:2`),
    /// or the whole model (`whole`) [default: modules of one class in a row, else repeated stretches]
    #[arg(long, value_name = "module:PATH,..|depth:N|whole")]
    #[serde(deserialize_with = "optional_blocks")]
    pub blocks: Option<Blocks>,
    /// Remove ops and their gradient ops: by name, such as aten::dropout or aten::*norm*, by number, such as ops[17],
    /// or by module, such as module:DLRM.bottom
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    #[serde(deserialize_with = "selections")]
    pub remove: Vec<Selection>,
    /// Run ops of the forward pass and their gradient ops on a stream of their own; named as for --remove
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = selection)]
    #[serde(deserialize_with = "selections")]
    pub on_stream: Vec<Selection>,
    /// Run independent branches in parallel on N streams
    #[arg(long, value_name = "N")]
    pub streams: Option<usize>,
    /// Accumulate the gradients of N batches before each update
    #[arg(long, value_name = "BATCHES", value_parser = batches, allow_negative_numbers = true)]
    pub accumulate: Option<u32>,
    /// Average gradients over N ranks, each of which runs this step, as by DistributedDataParallel; `predict --world` has more options
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub data_parallel: Option<u32>,
    /// Capture as much of the step as possible as a CUDA graph
    #[arg(long)]
    pub cuda_graph: bool,
    /// Factor on all host times: 0.5 for a host twice as fast
    #[arg(long, value_name = "TIMES", value_parser = times_as_long)]
    pub host_speed: Option<f64>,
}

/// Reads a batch size.
fn samples(text: &str) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(samples) if samples > 0 => Ok(samples),
        _ => Err("a batch is a whole number of samples, 1 or more".to_owned()),
    }
}

/// Reads a size of the model and its new value.
pub fn size(text: &str) -> Result<SetSize, String> {
    let (path, value) = text.split_once('=').ok_or("it takes PATH=VALUE, as tables[0].rows=1000000")?;
    let path = path.trim().parse().map_err(|error: steptime_rewrite::Error| error.to_string())?;
    let number = value.trim().replace('_', "").parse();
    let to = number.map_err(|_| format!("{value} is not a size: give a whole number, 1 or more"))?;
    Ok(SetSize { path, to })
}

/// Reads a selection of ops.
pub fn selection(text: &str) -> Result<Selection, String> {
    text.parse().map_err(|error: steptime_rewrite::Error| error.to_string())
}

fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SetSize>, D::Error> {
    checked::list(deserializer, size)
}

fn selections<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Selection>, D::Error> {
    checked::list(deserializer, selection)
}

/// Reads the number of batches per update.
fn batches(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(batches) if batches > 0 => Ok(batches),
        _ => Err("the number of batches per update is a whole number, 1 or more".to_owned()),
    }
}

/// Reads the number of segments of a row of equal blocks; 0 makes each block a segment.
fn segments(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "the number of segments is a whole number".to_owned())
}

/// Reads a number of segments, or `true`, which makes each block a segment.
fn optional_segments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Each(bool),
        Number(usize),
    }
    let given = Option::<Given>::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("must be True, or the number of segments"))?;
    Ok(given.and_then(|given| match given {
        Given::Each(each) => each.then_some(0),
        Given::Number(segments) => Some(segments),
    }))
}

/// Reads blocks: a text, or a list of modules.
pub fn optional_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Blocks>, D::Error> {
    let parts: Vec<String> = Vec::deserialize(deserializer)?;
    if parts.is_empty() {
        return Ok(None);
    }
    parts.join(",").parse().map(Some).map_err(serde::de::Error::custom)
}

/// Fusions of ops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fuse {
    /// All embedding bags into one, with the copies of their indices
    EmbeddingBags,
    /// The optimizer's ops into one
    Optimizer,
    /// Each chain of elementwise ops into one kernel, as torch.compile does for a function
    Elementwise,
    /// Each linear layer and the ReLU after it into one product
    Linear,
    /// Casts of `--dtype bf16` into the kernels of `--operators steptime` and the products beside them
    Casts,
    /// The gradient of each bias into the slope of the ReLU before it
    BiasGradients,
    /// The cross entropy of scores, and its gradient, into one pass over the scores each
    CrossEntropy,
    /// The inputs of concatenations into their results, and no copies of columns for updates of tables
    Concat,
}

/// Libraries of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operators {
    /// Those of `steptime.operators`
    Steptime,
    /// FBGEMM's table-batched embeddings, for embedding tables alone
    Fbgemm,
}

/// Precisions of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 32-bit numbers, multiplied with 10 bits of mantissa
    Tf32,
    /// bfloat16, as under autocast
    Bf16,
    /// float16, as under autocast; embedding lookups return float16, too
    Fp16,
}

impl From<&Changes> for steptime_predict::Changes {
    fn from(changes: &Changes) -> steptime_predict::Changes {
        let dims = changes.batch_dim.map_or(BatchDims::Inferred, BatchDims::At);
        let batch = changes.batch.map(|to| ResizeBatch { to, from: changes.recorded_batch, dims });
        let checkpoint = changes.checkpoint.map(|segments| Checkpoint {
            segments: Some(segments).filter(|&segments| segments > 0),
            blocks: changes.blocks.clone().unwrap_or_default(),
        });
        steptime_predict::Changes {
            remove: changes.remove.clone(),
            batch,
            sizes: changes.set.clone(),
            fuse: changes.fuse.iter().map(|&fuse| fuse.into()).collect(),
            among: changes.among.clone(),
            operators: changes.operators.map(Into::into),
            precision: changes.dtype.map(Into::into),
            channels_last: changes.channels_last,
            prefetch_inputs: changes.prefetch_inputs,
            reorder: changes.reorder,
            no_sync: changes.no_sync,
            checkpoint,
            on_stream: changes.on_stream.clone(),
            streams: changes.streams,
            accumulate: changes.accumulate,
            data_parallel: changes.data_parallel,
            cuda_graph: changes.cuda_graph,
        }
    }
}

impl From<Fuse> for steptime_predict::Fuse {
    fn from(fuse: Fuse) -> steptime_predict::Fuse {
        match fuse {
            Fuse::EmbeddingBags => steptime_predict::Fuse::EmbeddingBags,
            Fuse::Optimizer => steptime_predict::Fuse::Optimizer,
            Fuse::Elementwise => steptime_predict::Fuse::Elementwise,
            Fuse::Linear => steptime_predict::Fuse::Linear,
            Fuse::Casts => steptime_predict::Fuse::Casts,
            Fuse::BiasGradients => steptime_predict::Fuse::BiasGradients,
            Fuse::CrossEntropy => steptime_predict::Fuse::CrossEntropy,
            Fuse::Concat => steptime_predict::Fuse::Concat,
        }
    }
}

impl From<Operators> for steptime_predict::OperatorLibrary {
    fn from(operators: Operators) -> steptime_predict::OperatorLibrary {
        match operators {
            Operators::Steptime => steptime_predict::OperatorLibrary::Steptime,
            Operators::Fbgemm => steptime_predict::OperatorLibrary::Fbgemm,
        }
    }
}

impl From<Precision> for steptime_predict::Precision {
    fn from(precision: Precision) -> steptime_predict::Precision {
        match precision {
            Precision::Tf32 => steptime_predict::Precision::Tf32,
            Precision::Bf16 => steptime_predict::Precision::Bf16,
            Precision::Fp16 => steptime_predict::Precision::Fp16,
        }
    }
}
