//! Converts the traces of many ranks and runs into a lake: each trace is read once, and its tables are written as Parquet.
//!
//! ```text
//! LAKE/_steptime.json                      the version of the lake
//! LAKE/_ingest/RUN.I-of-N.json             report of the shard's last ingest, with damaged files and their reasons
//! LAKE/run=RUN/rank=R/rank.json            the file it was made from, and counts
//! LAKE/run=RUN/rank=R/TABLE.parquet        steps, ops, kernels, collectives, gaps; the step is a column
//! ```
//!
//! A rank is a folder, because a folder appears by one rename: all of its tables exist, or none. A folder per step would
//! make many files of a few kilobytes.
//!
//! Ops and kernels are summed by name and step, with a [`Sketch`] of their times: the sketches of two ranks add up to that
//! of both. Collectives and gaps have a row each.
#![forbid(unsafe_code)]

mod error;
mod ingest;
mod lake;
mod plan;
mod rank;
mod replace_folder;
mod report;
mod sketch;
mod tables;
mod write;

pub use error::Error;
pub use ingest::{Ingest, ingest};
pub use lake::{Input, Lake, RankFile, Rows, VERSION};
pub use plan::Shard;
pub use rank::Rank;
pub use report::{FileResult, Outcome, Report};
pub use sketch::{ACCURACY, Sketch};
pub use tables::Table;
