//! Answers of the library as text, one file an answer.

pub mod bench;
pub mod bench_cuda;
pub mod collectives;
pub mod compare;
pub mod csv;
pub mod device;
pub mod difference;
pub mod explain;
mod format;
pub mod gather_plan;
pub mod gemm;
pub mod host;
pub mod ingest;
pub mod inspect;
mod inspect_execution;
pub mod job;
pub mod kernels;
mod memory;
mod overheads;
pub mod predict;
pub mod replay;
pub mod roofline;
pub mod sweep;
mod table;
pub mod validate;
pub mod what_if;
pub mod width;
