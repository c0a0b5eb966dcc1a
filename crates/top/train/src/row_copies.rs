//! Predicted copies of rows between tables in host memory and their caches on the GPU.

use serde::Serialize;
use steptime_cost::device::spec::TransferSpec;
use steptime_launch::{Indices, Popularity, row_cache};

use crate::arguments::DataName;
use crate::host_tables::{HostMemory, HostTable};

/// Copies of rows for a step, once the caches are full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowCopies {
    /// Number of rows that are copied to the GPU. As many changed rows are copied back.
    pub rows: f64,
    /// Time of both copies at the rates of the link, in milliseconds.
    pub ms: f64,
}

impl RowCopies {
    /// The copies for steps of `batch` samples; `None` of a dataset, whose distribution of indices is not known.
    pub fn predict(host: &HostMemory, data: &DataName, batch: u64, link: &TransferSpec) -> Option<RowCopies> {
        let DataName::Synthetic { zipf } = *data else { return None };
        let (mut rows, mut ms) = (0.0, 0.0);
        for table in &host.tables {
            let own = misses(table, zipf, batch);
            rows += own;
            // 1 GB/s is 1e6 bytes a millisecond.
            let megabytes = own * table.row_bytes as f64 / 1e6;
            ms += megabytes / link.to_device_pinned_gb_s + megabytes / link.to_host_pinned_gb_s;
        }
        Some(RowCopies { rows, ms })
    }
}

/// Number of rows of a batch that a full cache does not have.
fn misses(table: &HostTable, zipf: f64, batch: u64) -> f64 {
    let (lookups, held) = (table.lookups as f64, table.cached as f64);
    if zipf <= 0.0 {
        return row_cache::misses(&Popularity::new(table.rows as f64, &Indices::Uniform), lookups, held);
    }
    // The first index of a bag is drawn; the others follow from it, so that bags with the same first one have the same rows.
    let popularity = Popularity::new(table.rows as f64, &Indices::Zipf(zipf));
    let each = (lookups / batch as f64).max(1.0);
    each * row_cache::misses(&popularity, batch as f64, held / each)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cached: usize) -> HostMemory {
        let table = |name: &str, rows| HostTable {
            name: name.to_owned(),
            rows,
            cached,
            lookups: 2000,
            row_bytes: 512,
        };
        HostMemory { tables: vec![table("a", 1_000_000), table("b", 10_000)], host_bytes: 0, device_bytes: 0 }
    }

    #[test]
    fn larger_caches_copy_fewer_rows_and_skewed_indices_fewer() {
        let spec = steptime_predict::pricing::device("h100").expect("a profile").spec;
        let of = |cached, data: &str| {
            let data = data.parse().expect("a name");
            RowCopies::predict(&host(cached), &data, 1000, &spec.transfer)
        };
        let [small, large, all] =
            [12_000, 500_000, 1_000_000].map(|cached| of(cached, "synthetic").expect("copies"));
        // Nearly all rows of the large table, and none of the small one, which is cached as a whole.
        assert!(small.rows > 1900.0 && small.rows < 2000.0, "{small:?}");
        assert!(large.rows < 0.6 * small.rows && all.rows < 1.0, "{large:?} {all:?}");
        let each = 512.0 / 1e6
            * (1.0 / spec.transfer.to_device_pinned_gb_s + 1.0 / spec.transfer.to_host_pinned_gb_s);
        assert!((small.ms / (small.rows * each) - 1.0).abs() < 1e-9, "{small:?}");
        let skewed = of(12_000, "synthetic:zipf:1.05").expect("copies");
        assert!(skewed.rows > 0.0 && skewed.rows < 0.8 * small.rows, "{skewed:?}");
        assert_eq!(of(12_000, "criteo"), None);
    }
}
