//! Tables of kernels that others measured, read as sweeps: one a GPU.
//!
//! A table says less than a sweep of ours: not what its GPU reaches, not what the cache held. Each file here knows one publisher's
//! columns, and which op each of its rows ran.

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

/// The entry of a sweep's metadata that says whose table it is.
pub const TABLE: &str = "table";
/// The entry that says how many rows were left out, and why.
pub const LEFT_OUT: &str = "left_out";

/// The entry that says that times are of calls from Python, and hold what the host adds.
pub const OF_CALLS: &str = "times_of_calls";

/// Reads a sweep of ours, or a table: NeuSight's CSV, aiconfigurator's Parquet.
///
/// Rows whose times say more of the host than of the GPU are left out; the metadata say how many.
///
/// # Errors
///
/// A file that is missing or of no schema known here; a row that cannot be, with its place.
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

/// Rows on their way into sweeps, by GPU.
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

    /// The sweeps, with what each says of itself.
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
