//! Distribution of rows over the lanes of a warp.

/// Lanes of a warp.
pub const WARP: usize = 32;

/// Vectors of one row that a lane holds at most.
pub const MOST_PASSES: usize = 4;

/// Bytes of a load at most, and the default alignment of rows.
const MOST_BYTES: usize = 16;

/// Gain that an additional vector in a lane must bring: it takes registers, and makes warps uneven.
const PASS_COST: f64 = 0.03;

/// Gain that an additional range must bring, for each of the first four: it reads all indices once more.
const RANGE_COST: f64 = 0.02;

/// A row of a table in memory: a header, then its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLayout {
    pub dim: usize,
    /// Bits of a value.
    pub bits: usize,
    /// Bytes before the values: scale and bias.
    pub header: usize,
    /// Bytes of the values.
    pub payload: usize,
    /// Alignment of rows, in bytes.
    pub align: usize,
}

/// A row in the lanes of a warp: `passes` vectors of `bytes` each in `lanes` lanes, so that a warp holds 32 / `lanes` rows
/// side by side. Rows of more than 32 lanes' vectors are cut into `ranges` of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Bytes of a load: 1, 2, 4, 8 or 16.
    pub bytes: usize,
    /// Values in a load.
    pub values: usize,
    /// Vectors of a row.
    pub vectors: usize,
    /// Lanes that hold a row, or a range of it.
    pub lanes: usize,
    /// Vectors of a row that a lane holds.
    pub passes: usize,
    /// Ranges of columns that are read separately.
    pub ranges: usize,
    /// Whether loads are aligned but values are not, so that the lanes shift them to their places.
    pub shifted: bool,
}

impl Lanes {
    /// Lanes of the forward pass of bags: [`Lanes::shifted`] if it pays, else [`Lanes::aligned`].
    #[must_use]
    pub fn for_bags(row: &RowLayout) -> Lanes {
        Lanes::shifted(row).unwrap_or_else(|| Lanes::aligned(row))
    }

    /// Lanes with aligned loads that are not wider than the row.
    #[must_use]
    pub fn aligned(row: &RowLayout) -> Lanes {
        let align = [row.align, row.header]
            .into_iter()
            .filter(|&bytes| bytes > 0)
            .fold(MOST_BYTES, |most, bytes| most.min(1 << bytes.trailing_zeros().min(4)));
        let bytes = align.min(row.payload.max(1).checked_next_power_of_two().unwrap_or(MOST_BYTES));
        let values = (bytes * 8 / row.bits.max(1)).max(1);
        let vectors = row.dim.max(1).div_ceil(values);
        let ranges = vectors.div_ceil(WARP);
        let one = Lanes { bytes, values, vectors, lanes: WARP, passes: 1, ranges, shifted: false };
        let whole = (1..=MOST_PASSES).map(|passes| (vectors.div_ceil(passes), passes, 1));
        let cut = (1..=2).map(|passes| (WARP, passes, vectors.div_ceil(WARP * passes)));
        let all = whole.chain(cut).map(|(lanes, passes, ranges)| Lanes { lanes, passes, ranges, ..one });
        Lanes::best(all).unwrap_or(one)
    }

    /// Lanes for rows of bytes or nibbles after a header of 4 bytes, in loads of 8 bytes that begin at the row or 4 bytes
    /// later: twice as wide as aligned rows would allow. `None` for other rows, and if it does not pay.
    #[must_use]
    pub fn shifted(row: &RowLayout) -> Option<Lanes> {
        let payload = row.payload.max(1);
        if row.header != 4 || !row.align.is_multiple_of(4) || !payload.is_multiple_of(8) {
            return None;
        }
        let vectors = payload / 8;
        let values = (64 / row.bits.max(1)).max(1);
        let one = Lanes { bytes: 8, values, vectors, lanes: 1, passes: 1, ranges: 1, shifted: true };
        // Two vectors per lane share the shifting of a row among fewer lanes, which was measured to be faster.
        let all = (vectors.min(2)..=MOST_PASSES).map(|passes| Lanes {
            lanes: vectors.div_ceil(passes),
            passes,
            ..one
        });
        Lanes::best(all)
    }

    /// Lanes of a gather in slices of `slice` bytes: rows that are cut anyway are cut into slices of 32 lanes, of one,
    /// two or four vectors each.
    #[must_use]
    pub fn in_slices(self, slice: usize) -> Lanes {
        if self.ranges <= 1 {
            return self;
        }
        let passes = Lanes::slice_passes(slice, self.bytes);
        Lanes { passes, ranges: self.vectors.div_ceil(WARP * passes), ..self }
    }

    /// Vectors of a lane in a slice of about `slice` bytes, in loads of `bytes`.
    #[must_use]
    pub fn slice_passes(slice: usize, bytes: usize) -> usize {
        (slice / (WARP * bytes)).clamp(1, MOST_PASSES).next_power_of_two()
    }

    /// Candidate with the busiest lanes, less the cost of more vectors in a lane and of more ranges.
    fn best(all: impl Iterator<Item = Lanes>) -> Option<Lanes> {
        let gain = |lanes: &Lanes| {
            let more_ranges = (lanes.ranges - 1).min(4) as f64;
            lanes.busy() - PASS_COST * (lanes.passes - 1) as f64 - RANGE_COST * more_ranges
        };
        all.filter(|lanes| lanes.lanes <= WARP).max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// Required alignment of rows, in bytes.
    #[must_use]
    pub fn align(&self) -> usize {
        if self.shifted { 4 } else { self.bytes }
    }

    /// Rows, or ranges of them, that a warp holds side by side.
    #[must_use]
    pub fn groups(&self) -> usize {
        WARP / self.lanes
    }

    /// Share of lanes, over all loads of a row, that load something.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let loads = WARP * self.passes * self.ranges;
        (self.groups() * self.vectors) as f64 / loads as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of values of `bits` bits, with a header if these are bytes or nibbles, aligned as their size allows.
    fn row(dim: usize, bits: usize) -> RowLayout {
        let (header, payload) = (if bits <= 8 { 4 } else { 0 }, dim * bits / 8);
        RowLayout { dim, bits, header, payload, align: 1 << (header + payload).trailing_zeros().min(4) }
    }

    #[test]
    fn narrow_rows_share_a_warp_and_wide_ones_are_cut() {
        let of = |dim, bits| {
            let Lanes { bytes, lanes, passes, ranges, .. } = Lanes::for_bags(&row(dim, bits));
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
    }

    #[test]
    fn rows_of_bytes_behind_half_precision_are_shifted() {
        let of = |dim, bits, align| {
            Lanes::shifted(&RowLayout { align, ..row(dim, bits) })
                .map(|shape| (shape.vectors, shape.lanes, shape.passes))
        };
        assert_eq!(of(128, 8, 4), Some((16, 8, 2)));
        assert_eq!(of(128, 4, 4), Some((8, 4, 2)));
        assert_eq!(of(8, 8, 16), Some((1, 1, 1)));
        assert_eq!(of(128, 8, 2), None);
        assert_eq!(of(124, 8, 4), None);
        assert_eq!(of(2048, 8, 4), None);
        assert_eq!(Lanes::shifted(&RowLayout { header: 8, ..row(128, 8) }), None);
        for dim in (8..=1024).step_by(8) {
            let shape = Lanes::shifted(&row(dim, 8)).unwrap();
            assert!(shape.lanes * shape.passes >= shape.vectors && shape.lanes <= 32, "{shape:?}");
            assert!(shape.busy() >= 0.65, "{dim}: {shape:?} {}", shape.busy());
        }
    }

    #[test]
    fn slices_are_one_two_or_four_vectors_of_a_warp() {
        let of = |slice| {
            let lanes = Lanes::aligned(&row(4096, 32)).in_slices(slice);
            (lanes.passes, lanes.ranges)
        };
        assert_eq!([of(0), of(512), of(1600), of(1 << 40)], [(1, 32), (1, 32), (4, 8), (4, 8)]);
        let narrow = Lanes::aligned(&row(8, 32));
        assert_eq!(narrow.in_slices(512), narrow);
    }

    proptest! {
        #[test]
        fn every_column_is_held_once_and_most_lanes_are_busy(
            (dim, bits, header) in (1_usize..1500).prop_flat_map(|dim| {
                let kinds = vec![(32, 0), (16, 0), (8, 4), (8, 8), (4, 4), (4, 8)];
                (Just(dim), prop::sample::select(kinds)).prop_map(|(dim, (bits, header))| (dim, bits, header))
            }),
            align in 0_u32..5,
        ) {
            let align = (1_usize << align).max(if bits > 8 { bits / 8 } else { header.min(4) });
            let row = RowLayout { dim, bits, header, payload: (dim * bits).div_ceil(8), align };
            let aligned = Lanes::aligned(&row);
            for lanes in [Some(aligned), Lanes::shifted(&row)].into_iter().flatten() {
                let (of_range, all) = (lanes.lanes * lanes.passes, lanes.lanes * lanes.passes * lanes.ranges);
                prop_assert!(all >= lanes.vectors && all - of_range < lanes.vectors, "{lanes:?}");
                prop_assert!(lanes.vectors * lanes.values >= dim && (lanes.vectors - 1) * lanes.values < dim);
                prop_assert!(lanes.lanes <= WARP && lanes.passes <= MOST_PASSES && lanes.groups() >= 1);
                prop_assert!(lanes.busy() >= 0.65 && lanes.busy() <= 1.0, "{lanes:?} {}", lanes.busy());
                prop_assert!(align.is_multiple_of(lanes.align()));
            }
            // No load reaches behind the row by more than its padding to the load's size.
            prop_assert!(header.is_multiple_of(aligned.bytes));
        }
    }
}
