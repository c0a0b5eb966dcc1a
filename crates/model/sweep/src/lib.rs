//! Reads sweeps: files of kernels measured by `python -m steptime.measure`, and tables from other publishers.
//!
//! ```text
//! table ──read_table──┐
//! sweep.parquet ──read──> Sweep: metadata, rows ──observe──> Observations ──cost::device::fit──> DeviceProfile
//!                            └──spec──> DeviceSpec
//! ```
#![forbid(unsafe_code)]

mod catch_panic;
mod error;
mod meta;
mod observe;
mod parquet_file;
mod read;
mod row;
mod spec;
mod tables;
mod thrift;

pub use catch_panic::guarded;
pub use error::Error;
pub use meta::{SweepMeta, VERSION};
pub use observe::{Observations, observe};
pub use read::{Sweep, read, read_all};
pub use row::{Row, State};
pub use spec::spec;
pub use tables::{LEFT_OUT, OF_CALLS, TABLE, read_table};
