//! Tables of kernels from other publishers, read as sweeps: one per GPU.
//!
//! A table has less information than a sweep: neither peak rates of its GPU nor the state of the cache. Each file here defines one publisher's
//! columns and the op of each row.

mod aiconfigurator;
mod neusight;
mod texts;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use steptime_trace::open_regular;

use crate::error::Error;
use crate::meta::SweepMeta;
use crate::read::{Sweep, read};
use crate::row::Row;

/// Metadata entry of a sweep with the publisher of its table.
pub const TABLE: &str = "table";
/// Metadata entry with the number of rows that were left out, and the reason.
pub const LEFT_OUT: &str = "left_out";

/// Metadata entry of tables whose times are of calls from Python, and include the host's part.
pub const OF_CALLS: &str = "times_of_calls";

/// Reads a sweep of steptime, or a table: NeuSight's CSV, aiconfigurator's Parquet.
///
/// Rows whose times depend more on the host than on the GPU are left out; the metadata have their number.
///
/// # Errors
///
/// A file that is missing or of an unknown schema; an impossible row, with its place.
pub fn read_table(path: &Path) -> Result<Vec<Sweep>, Error> {
    let mut file = open_regular(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let mut start = [0; 4];
    let length = file.read(&mut start).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if &start[..length] != b"PAR1" {
        return neusight::read(path);
    }
    match read(path) {
        Ok(sweep) => Ok(vec![sweep]),
        Err(Error::Broken { .. }) if aiconfigurator::is_one(path) => aiconfigurator::read(path),
        Err(error) => Err(error),
    }
}

/// Rows collected into sweeps, by GPU.
#[derive(Default)]
struct ByDevice {
    rows: BTreeMap<String, Vec<Row>>,
    left_out: BTreeMap<String, usize>,
}

impl ByDevice {
    fn push(&mut self, device: &str, row: Row) {
        let rows = self.rows.entry(device.to_owned()).or_default();
        let case = i32::try_from(rows.len()).unwrap_or(i32::MAX);
        rows.push(Row { case, ..row });
    }

    fn leave_out(&mut self, device: &str) {
        *self.left_out.entry(device.to_owned()).or_default() += 1;
    }

    /// Returns the sweeps, each with its metadata.
    fn sweeps(self, path: &Path, table: &str, why: &str) -> Result<Vec<Sweep>, Error> {
        let ByDevice { rows, left_out } = self;
        if rows.is_empty() {
            return Err(Error::Empty { path: path.to_owned() });
        }
        let sweep = |(device, rows): (String, Vec<Row>)| {
            let mut entries = BTreeMap::from([(TABLE.to_owned(), table.to_owned())]);
            if let Some(count) = left_out.get(&device) {
                entries.insert(LEFT_OUT.to_owned(), format!("{count} rows: {why}"));
            }
            entries.insert("device".to_owned(), device);
            Sweep { path: path.to_owned(), meta: SweepMeta { entries }, rows }
        };
        Ok(rows.into_iter().map(sweep).collect())
    }
}
