//! Tables in host memory: those that are wanted, and those of a plan.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::Error;

/// The tables that are wanted in host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostTables {
    /// The largest ones, until the step fits the GPU.
    Auto,
    All,
    /// Tables by their numbers in the model.
    Numbers(Vec<usize>),
}

impl FromStr for HostTables {
    type Err = Error;

    fn from_str(text: &str) -> Result<HostTables, Error> {
        match text {
            "auto" => Ok(HostTables::Auto),
            "all" => Ok(HostTables::All),
            numbers => {
                let numbers = numbers.split(',').map(|number| number.trim().parse().ok());
                let numbers = numbers.collect::<Option<_>>();
                numbers.map(HostTables::Numbers).ok_or_else(|| Error::HostTables { text: text.to_owned() })
            }
        }
    }
}

/// Size of a cache, in GiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheSize(pub f64);

impl FromStr for CacheSize {
    type Err = Error;

    fn from_str(text: &str) -> Result<CacheSize, Error> {
        let size = text.parse().ok().filter(|size: &f64| size.is_finite() && *size > 0.0);
        size.map(CacheSize).ok_or_else(|| Error::CacheSize { text: text.to_owned() })
    }
}

/// Tables in host memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostMemory {
    /// The tables of which the GPU caches rows. Other tables of their calls are on the GPU with all rows.
    pub tables: Vec<HostTable>,
    /// Bytes in host memory, with optimizer states and with the tables that are cached as a whole.
    pub host_bytes: u64,
    /// Bytes of the rows on the GPU.
    pub device_bytes: u64,
}

/// A table in host memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostTable {
    /// Name of the parameter.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of rows that the GPU caches.
    pub cached: usize,
    /// Number of lookups of a step.
    pub lookups: usize,
    /// Bytes of a row and of its optimizer state.
    pub row_bytes: usize,
}

/// Number of the largest tables that are shown.
const SHOWN: usize = 3;

/// Numbers of tables and bytes, and the cached rows of the largest tables.
impl fmt::Display for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [host, device] = [self.host_bytes, self.device_bytes].map(|bytes| bytes as f64 / 1e6);
        let count = self.tables.len();
        let tables = if count == 1 { "table" } else { "tables" };
        write!(f, "{count} {tables}, {host:.2} MB; {device:.2} MB of their rows on the GPU")?;
        let mut order: Vec<&HostTable> = self.tables.iter().collect();
        order.sort_by_key(|table| std::cmp::Reverse(table.rows));
        for (at, HostTable { name, rows, cached, .. }) in order.iter().take(SHOWN).enumerate() {
            write!(f, "{} {cached} of {rows} rows of {name}", if at == 0 { ":" } else { "," })?;
        }
        if count > SHOWN { write!(f, " and {} more", count - SHOWN) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_tables_are_shown() {
        let table = |rows| HostTable { name: format!("t{rows}"), rows, cached: 8, lookups: 4, row_bytes: 64 };
        let tables = [9, 5000, 70, 800].map(table);
        let host = HostMemory { tables: tables.to_vec(), host_bytes: 3_000_000, device_bytes: 20_000 };
        assert_eq!(
            host.to_string(),
            "4 tables, 3.00 MB; 0.02 MB of their rows on the GPU: 8 of 5000 rows of t5000, 8 of 800 rows of t800, \
             8 of 70 rows of t70 and 1 more"
        );
    }

    #[test]
    fn names_of_tables_and_sizes_are_read() {
        assert_eq!("2, 0".parse::<HostTables>().expect("numbers"), HostTables::Numbers(vec![2, 0]));
        for wrong in ["", "some", "1,", "-1"] {
            assert!(wrong.parse::<HostTables>().is_err(), "{wrong}");
        }
        assert_eq!("0.5".parse::<CacheSize>().expect("a size"), CacheSize(0.5));
        for wrong in ["0", "-1", "inf", "2GB"] {
            assert!(wrong.parse::<CacheSize>().is_err(), "{wrong}");
        }
    }
}
