//! A training step that is run: the ops that were predicted, on a CPU or a GPU, with planned memory.
//!
//! ```text
//! Model ──DescribedStep──> Step ──rules──> Step ──Program──> instructions + memory plan ──Session──> losses, parameters
//! ```
//!
//! A [`Program`] is a flat list of instructions. For each op of the step the highest level of nesting with an implementation runs as a whole;
//! otherwise the ops inside it run. An op without an implementation is refused before anything runs. A [`Session`] has the memory of a program:
//! parameters and optimizer states by name, inputs, and one arena for all temporary tensors.
//!
//! ```
//! use steptime_ops::Cpu;
//! use steptime_runtime::{DescribedStep, Program, Session};
//!
//! let model = steptime_eager::Model::parse("model = 'dlrm'\nbatch = 2\ndense = 3\nbottom_mlp = [4]\ntop_mlp = [1]
//!     tables = [{ rows = 10, columns = 4, lookups = 2 }]")?;
//! let program = Program::new(&DescribedStep::new(&model)?)?;
//! let mut session = Session::new(program, Cpu::new(1)?, 7)?;
//! session.feed_floats("dense", &[0.5; 6])?;
//! session.feed_floats("labels", &[0.0, 1.0])?;
//! session.feed_ints("tables.0.indices", &[1, 2, 3, 9])?;
//! session.feed_ints("tables.0.offsets", &[0, 2])?;
//! let (first, second) = (session.step()?, session.step()?);
//! assert!(second < first);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod arg;
mod binder;
mod bytes;
mod cacheable_tables;
mod chains;
mod checkpoint;
mod compile;
mod cross_entropy;
mod described;
mod direct_exchanges;
mod early_exchanges;
mod error;
mod forward;
mod fuse;
mod gpu;
mod gpu_engine;
mod gpu_group;
mod group;
mod initial;
mod inputs;
mod joined_rows;
mod kept;
mod kernel;
mod losses;
mod measure;
mod narrow_exchanges;
mod numbers;
mod ops;
mod padded_rows;
mod piece;
mod places;
mod plan;
mod program;
#[cfg(test)]
mod reference;
mod removed;
mod rounds;
mod row;
mod row_cache_plan;
mod row_update;
mod run;
mod session;
mod slices;
mod step_times;
mod table;
mod target;
mod used_bytes;
mod views;

pub use cacheable_tables::CacheableTable;
pub use checkpoint::NamedShape;
pub use described::DescribedStep;
pub use error::Error;
pub use forward::Outputs;
pub use gpu_engine::GpuOptions;
pub use gpu_group::{GpuGroup, Link};
pub use group::{Rank, Watch};
pub use kept::TensorPart;
pub use numbers::Numbers;
pub use plan::{MemoryPlan, Placement, Reuse};
pub use program::{Instruction, Program};
pub use rounds::input_round;
pub use session::Session;
pub use slices::Region;
pub use step_times::{OpTimes, Span, StepTimes};
pub use table::known_ops;
pub use target::Target;
