//! Answers: everything that a report prints or writes, as plain data. One file per answer.
//!
//! Each implements [`serde::Serialize`]; `--json` prints the answer and nothing else. Field names of times give their unit
//! (`_ms`, `_us`), shares and errors are fractions, sizes are bytes.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
//! let step = steptime_predict::open(format!("{examples}/dlrm_default_2048"))?;
//! let answer = steptime_answers::PredictionReport::from_query(&step.predict().on("h200")?)?;
//! let json = serde_json::to_string(&answer)?;
//! # assert!(json.starts_with(r#"{"schema":1,"command":"predict""#));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod choose;
pub mod chrome;
pub mod collectives;
pub mod compare;
pub mod coverage;
pub mod critical_path;
pub mod device;
pub mod device_time_sources;
pub mod difference;
pub mod doubts;
pub mod execution;
pub mod explain;
pub mod grid;
pub mod ingest;
pub mod inspect;
pub mod job;
pub mod kernels;
pub mod overheads;
pub mod predict;
pub mod replay;
pub mod roofline;
pub mod scale;
pub mod shard;
mod shared;
mod slack;
mod stretch_names;
pub mod validate;
pub mod what_if;

pub use choose::ChooseReport;
pub use collectives::CollectivePricesReport;
pub use compare::CompareReport;
pub use device::{CorrectionEntry, DeviceEntry, DeviceProfileReport, TableScoreEntry};
pub use difference::Difference;
pub use doubts::DoubtEntry;
pub use explain::ExplainReport;
pub use grid::{GridReport, GridRow};
pub use ingest::IngestReport;
pub use inspect::InspectReport;
pub use job::{JobPredictionReport, JobRecordingReport, JobValidationReport, PlannerValidationReport};
pub use kernels::KernelsReport;
pub use predict::PredictionReport;
pub use replay::ReplayReport;
pub use roofline::RooflineReport;
pub use scale::ScaleReport;
pub use shard::PlacementReport;
pub use shared::{KernelTime, PeakMemory, SCHEMA, Steps};
pub use validate::ValidationReport;
pub use what_if::WhatIfReport;
