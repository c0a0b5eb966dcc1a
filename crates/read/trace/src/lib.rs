//! Reads PyTorch's recordings of a training step into columns.
//!
//! ```text
//! kineto.json.gz ──┐                              ┌── Trace           ops, calls, activities, syncs
//! et.json.gz ──────┼── open ── Recording per rank ┼── ExecutionTrace  nodes, tensors, values
//! meta.json ───────┘                              └── Meta            the un-profiled step time
//! ```
//!
//! Files may be plain, gzip or zstd, in folders or tar archives, of any schema since 2021, truncated
//! or slightly broken: repairs are counted in [`Notes`].
//!
//! ```
//! let json = br#"[{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 3.141, "dur": 2}]"#;
//! let trace = steptime_trace::read_kineto(json)?;
//! let op = trace.ops.row(0);
//! assert_eq!(trace.name(op.name), "aten::add");
//! assert_eq!((op.start, op.dur.to_string()), (steptime_trace::Nanos(3_141), "2.00 µs".into()));
//! # Ok::<(), steptime_trace::Error>(())
//! ```
#![forbid(unsafe_code)]

mod byte_source;
mod collective;
mod columns;
mod complete_bytes;
mod distributed;
mod document;
#[cfg(test)]
mod equivalence;
mod error;
mod execution;
mod ids;
mod input;
mod json;
mod kineto;
mod list;
mod nsight;
mod number;
mod other_profilers;
mod progress;
mod read;
mod repairs;
mod shared_window;
mod sliding_buffer;
mod source;
mod strings;
mod text;
mod units;
mod workers;

pub use collective::{Carrier, Collective};
pub use distributed::{DistributedRun, ProcessGroup};
pub use document::Document;
pub use error::Error;
pub use execution::{
    DimRange, ExecutionTrace, LinkedActivity, Node, Nodes, Schema, Tensor, TensorIdx, Value, ValueRange,
    Values,
};
pub use input::{
    ConstantTensor, Input, KeptResult, KinetoFile, Meta, ModuleCall, Numbers, Options, RecordedLookup,
    Recording, Want, kineto_files, open, open_with,
};
pub use kineto::{
    Activities, Activity, ActivityKind, ActivityRows, Call, CallLibrary, Calls, DeviceProperties,
    GpuAnnotation, GpuAnnotations, HostInterval, HostIntervals, HostKind, HostOp, HostOps, LaunchShape,
    OpInput, OpInputs, Stream, StreamId, SyncEvent, SyncKind, Syncs, Thread, ThreadId, Trace,
};
pub use other_profilers::{Origin, STEP_MARK};
pub use progress::Report;
pub use read::{
    read, read_execution_trace, read_execution_trace_file, read_execution_trace_from, read_file, read_from,
    read_kineto, read_kineto_file, read_kineto_file_windowed, read_kineto_from,
};
pub use repairs::{Note, Notes, Tally};
pub use strings::{NameId, Strings};
pub use text::{open_regular, read_bytes, read_regular, read_text};
pub use units::{Bytes, Nanos};
