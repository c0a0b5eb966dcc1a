//! A model without PyTorch: a recommender described in TOML, and the training step that PyTorch eager would record of it.
//!
//! ```text
//! model.toml ──Description──> Model ──ops run on tensors without values──> ExecutionTrace
//! ```
//!
//! A [`Model`] runs for two steps. Ops call others as PyTorch's do on a GPU, a tape holds the backward functions, memory comes from a caching
//! allocator, and the second step is recorded. The output is what PyTorch's `ExecutionTraceObserver` would have written, and is read like it.
//!
//! ```
//! let model = steptime_eager::Model::parse("model = 'dlrm'\nbatch = 64\ndense = 13\nbottom_mlp = [32, 16]\ntop_mlp = [8, 1]
//!     tables = [{ rows = 1000, columns = 16, lookups = 4 }]")?;
//! let trace = model.record();
//! assert!((0..trace.nodes.len()).any(|row| trace.name(trace.nodes.name[row]) == "EmbeddingBagBackward0"));
//! # Ok::<(), steptime_eager::Problem>(())
//! ```
#![forbid(unsafe_code)]

mod argument;
mod backward;
mod buckets;
mod eager;
mod error;
mod memory;
mod model;
mod ops;
mod optimizer;
mod recorder;
mod reducer;
mod role;
mod tensor;
mod world;
mod written;

pub use error::{Error, Problem};
pub use model::{Cache, Model, Sharding, TableLayout, TableShard, TableSize};
pub use optimizer::Rule as OptimizerRule;
pub use role::{Initial, NamedShard, NamedStep, NamedTensor, Role};
pub use written::{EmbeddingTable, Forward, Layers, LinearLayer, Value, record};
