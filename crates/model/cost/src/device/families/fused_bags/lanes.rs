//! How lanes share rows and bags in the forward pass: as `steptime-cuda` chooses it in `lanes.rs` and `bag_plan.rs`.

use steptime_aten::kernel::{FusedBags, FusedTable};

/// Loads of a row that one lane makes, at most.
const MOST_PASSES: u64 = 4;

/// Warps that fill a GPU well enough: below, short bags are not put together.
const FILL: u64 = 132 * 16;

/// How lanes share the rows of a table, and its bags.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lanes {
    /// Bytes of a load.
    pub bytes: u64,
    /// Values in it.
    pub values: u64,
    /// Lanes of a row, or of a range of its columns.
    pub lanes: u64,
    /// Loads of a lane for a row.
    pub passes: u64,
    /// Ranges of columns, which are read one apart from the other.
    pub ranges: u64,
    /// Bags that a group of lanes walks over as one stream.
    pub together: u64,
    /// Rows of a stream under way at once.
    pub in_flight: u64,
}

impl Lanes {
    pub fn new(table: &FusedTable, bags: &FusedBags) -> Lanes {
        let bits = bags.element_bits.max(1);
        let header = if bits <= 8 { 4 } else { 0 };
        let payload = table.row_bytes.saturating_sub(header).max(1);
        let align = 1 << table.row_bytes.trailing_zeros().min(4);
        let shared = shifted(payload, header, align, bits).unwrap_or_else(|| {
            let bytes = (if header > 0 { align.min(header) } else { align }).min(payload.next_power_of_two());
            aligned(table.dim.max(1), bytes, bits)
        });
        shared.with_bags(bags)
    }

    fn shape(bytes: u64, bits: u64, [lanes, passes, ranges]: [u64; 3]) -> Lanes {
        let values = (bytes * 8 / bits).max(1);
        Lanes { bytes, values, lanes, passes, ranges, together: 1, in_flight: 1 }
    }

    /// Rows, or ranges of them, side by side in a warp.
    pub fn groups(&self) -> u64 {
        32 / self.lanes.clamp(1, 32)
    }

    /// The share of lanes that load something of rows of so many vectors, less what passes and ranges cost.
    fn gain(&self, vectors: u64) -> f64 {
        let busy = (self.groups() * vectors) as f64 / (32 * self.passes * self.ranges) as f64;
        busy - 0.03 * (self.passes - 1) as f64 - 0.02 * (self.ranges - 1).min(4) as f64
    }

    fn with_bags(self, bags: &FusedBags) -> Lanes {
        let all = bags.bags.saturating_mul(bags.tables.len() as u64).max(1);
        let length = bags.lookups.div_ceil(all).max(1);
        let (warps, wanted) = (all.div_ceil(self.groups()), if length >= 4 { 1 } else { 8 });
        let fits = |&many: &u64| many <= wanted && many <= self.lanes && warps / many >= FILL;
        let together = [wanted, 4, 2].into_iter().find(fits).unwrap_or(1);
        let most = (128 / (self.bytes * self.passes)).clamp(1, 8);
        let in_flight = if together > 1 { most.min(4) } else { most.min(length) };
        Lanes { together, in_flight, ..self }
    }
}

/// The last of the best, as an iterator's `max_by` finds it.
fn best(vectors: u64, all: impl Iterator<Item = Lanes>) -> Option<Lanes> {
    all.filter(|lanes| lanes.lanes <= 32).max_by(|a, b| a.gain(vectors).total_cmp(&b.gain(vectors)))
}

/// Aligned loads of no more than a row.
fn aligned(dim: u64, bytes: u64, bits: u64) -> Lanes {
    let vectors = dim.div_ceil((bytes * 8 / bits).max(1));
    let whole = (1..=MOST_PASSES).map(|passes| [vectors.div_ceil(passes), passes, 1]);
    let cut = (1..=2).map(|passes| [32, passes, vectors.div_ceil(32 * passes)]);
    let all = whole.chain(cut).map(|shape| Lanes::shape(bytes, bits, shape));
    best(vectors, all).unwrap_or_else(|| Lanes::shape(bytes, bits, [32, 1, vectors.div_ceil(32)]))
}

/// Loads of 8 bytes of rows behind a header of 4, shifted into place.
fn shifted(payload: u64, header: u64, align: u64, bits: u64) -> Option<Lanes> {
    if header != 4 || align < 4 || !payload.is_multiple_of(8) {
        return None;
    }
    let vectors = payload / 8;
    let all = (vectors.min(2)..=MOST_PASSES).map(|passes| [vectors.div_ceil(passes), passes, 1]);
    best(vectors, all.map(|shape| Lanes::shape(8, bits, shape)))
}

#[cfg(test)]
mod tests {
    use steptime_aten::kernel::Pooling;

    use super::*;

    fn lanes(dim: u64, bits: u64, bags: u64, length: u64) -> Lanes {
        let row_bytes = dim * bits / 8 + if bits <= 8 { 4 } else { 0 };
        let table = FusedTable { rows: 1000, dim, row_bytes };
        let pooling = Pooling::Sum;
        let tables = [table].into();
        let (lookups, element_bits) = (bags * length, bits);
        let bags = FusedBags {
            update: None,
            tables,
            bags,
            lookups,
            pooling,
            weighted: false,
            element_bits,
            index_bytes: 8,
        };
        Lanes::new(&table, &bags)
    }

    #[test]
    fn rows_are_shared_as_the_kernels_do() {
        let of = |dim, bits| {
            let Lanes { bytes, lanes, passes, ranges, .. } = lanes(dim, bits, 64, 10);
            (bytes, lanes, passes, ranges)
        };
        assert_eq!(of(128, 32), (16, 32, 1, 1));
        assert_eq!(of(32, 32), (16, 8, 1, 1));
        assert_eq!(of(8, 32), (16, 2, 1, 1));
        assert_eq!(of(128, 16), (16, 16, 1, 1));
        assert_eq!(of(512, 32).3, 2);
        assert_eq!(of(96, 32), (16, 8, 3, 1));
        assert_eq!(of(128, 8), (8, 8, 2, 1));
        assert_eq!(of(128, 4), (8, 4, 2, 1));
        assert_eq!(of(131, 32).0, 4);
        for (dim, bits) in (2..1500).step_by(2).flat_map(|dim| [4, 8, 16, 32].map(|bits| (dim, bits))) {
            let found = lanes(dim, bits, 4096, 3);
            let held = found.values * found.lanes * found.passes * found.ranges;
            assert!(found.lanes <= 32 && held >= dim, "{dim} {bits}: {found:?}");
        }
    }

    #[test]
    fn short_bags_are_put_together_where_there_are_many() {
        let of = |bags, length| {
            let Lanes { together, in_flight, .. } = lanes(128, 32, bags, length);
            (together, in_flight)
        };
        assert_eq!([of(100_000, 1), of(9000, 1), of(2048, 1)], [(8, 4), (4, 4), (1, 1)]);
        assert_eq!([of(2048, 20), of(100_000, 5)], [(1, 8), (1, 5)]);
    }
}
