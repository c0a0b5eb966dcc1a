//! How the lanes of a warp share rows.

use steptime_ops::embedding::{Element, Scale};

/// A row as lanes hold it: `passes` vectors of `bytes` each in `lanes` lanes, so that a warp holds 32 / `lanes` rows
/// side by side. Rows of more than 32 lanes' vectors are cut into `ranges` of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes {
    /// Bytes of a load: 1, 2, 4, 8 or 16.
    pub bytes: usize,
    /// Values in it.
    pub values: usize,
    /// Vectors of a row.
    pub vectors: usize,
    /// Lanes that hold a row, or a range of it.
    pub lanes: usize,
    /// Vectors of a row that a lane holds.
    pub passes: usize,
    /// Ranges of columns that are read one apart from the other.
    pub ranges: usize,
    /// Whether loads are aligned but values are not, and are shifted to where they belong by the lanes together.
    pub shifted: bool,
}

/// Vectors of one row that a lane holds at most.
const MOST_PASSES: usize = 4;

/// What an additional vector in a lane must gain: it takes registers, and makes warps uneven.
const PASS_COST: f64 = 0.03;

impl Lanes {
    /// Of rows of `dim` columns, whose starts are multiples of `align` bytes.
    #[must_use]
    pub fn new(dim: usize, element: Element, align: usize) -> Lanes {
        let header = header(element);
        let payload = element.row_bytes(dim) - header;
        // Aligned loads, of no more than the row.
        let align = [align, header]
            .into_iter()
            .filter(|&bytes| bytes > 0)
            .fold(16, |most, bytes| most.min(1 << bytes.trailing_zeros().min(4)));
        let bytes = align.min(payload.next_power_of_two());
        let values = bytes * 8 / bits(element);
        let vectors = dim.div_ceil(values);
        let whole = (1..=MOST_PASSES).map(|passes| (vectors.div_ceil(passes), passes, 1));
        let cut = (1..=2).map(|passes| (32, passes, vectors.div_ceil(32 * passes)));
        let one = Lanes {
            bytes,
            values,
            vectors,
            lanes: 32,
            passes: 1,
            ranges: vectors.div_ceil(32),
            shifted: false,
        };
        let all = whole.chain(cut).map(|(lanes, passes, ranges)| Lanes { lanes, passes, ranges, ..one });
        Lanes::best(all).unwrap_or(one)
    }

    /// Of rows of bytes or nibbles behind a header of 4 bytes, in loads of 8 bytes that begin where rows do or 4 bytes
    /// behind: twice as wide as aligned rows would allow. `None` for other rows, and those not worth it.
    #[must_use]
    pub fn shifted(dim: usize, element: Element, align: usize) -> Option<Lanes> {
        let payload = element.row_bytes(dim) - header(element);
        if header(element) != 4 || !align.is_multiple_of(4) || !payload.is_multiple_of(8) {
            return None;
        }
        let vectors = payload / 8;
        let values = 64 / bits(element);
        let one = Lanes { bytes: 8, values, vectors, lanes: 1, passes: 1, ranges: 1, shifted: true };
        // Two vectors a lane share the shifting of a row among fewer lanes, which was measured to be faster.
        let all = (vectors.min(2)..=MOST_PASSES).map(|passes| Lanes {
            lanes: vectors.div_ceil(passes),
            passes,
            ..one
        });
        Lanes::best(all)
    }

    /// The one whose lanes are busiest, less what more vectors in a lane and more ranges cost.
    fn best(all: impl Iterator<Item = Lanes>) -> Option<Lanes> {
        let gain = |lanes: &Lanes| {
            // A range more reads all indices once more.
            lanes.busy() - PASS_COST * (lanes.passes - 1) as f64 - 0.02 * (lanes.ranges - 1).min(4) as f64
        };
        all.filter(|lanes| lanes.lanes <= 32).max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// Bytes that rows must begin at multiples of.
    #[must_use]
    pub fn align(&self) -> usize {
        if self.shifted { 4 } else { self.bytes }
    }

    /// Rows, or ranges of them, that a warp holds side by side.
    #[must_use]
    pub fn groups(&self) -> usize {
        32 / self.lanes
    }

    /// The share of lanes, over all loads of a row, that load something.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let loads = 32 * self.passes * self.ranges;
        (self.groups() * self.vectors) as f64 / loads as f64
    }
}

/// Bytes before the values of a row.
pub(super) fn header(element: Element) -> usize {
    match element {
        Element::F32 | Element::F16 | Element::Bf16 => 0,
        Element::Int8(scale) | Element::Int4(scale) => scale.bytes(),
    }
}

fn bits(element: Element) -> usize {
    match element {
        Element::F32 => 32,
        Element::F16 | Element::Bf16 => 16,
        Element::Int8(_) => 8,
        Element::Int4(_) => 4,
    }
}

/// The element's name in device code.
pub(super) fn device_name(element: Element) -> &'static str {
    match element {
        Element::F32 => "F32",
        Element::F16 => "F16",
        Element::Bf16 => "BF16",
        Element::Int8(Scale::F16) => "INT8_F16",
        Element::Int8(Scale::F32) => "INT8_F32",
        Element::Int4(Scale::F16) => "INT4_F16",
        Element::Int4(Scale::F32) => "INT4_F32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_rows_share_a_warp_and_wide_ones_are_cut() {
        let of = |dim, element| {
            let shape = Lanes::new(dim, element, Element::pitch(element, dim).max(16));
            (shape.bytes, shape.lanes, shape.passes, shape.ranges)
        };
        assert_eq!(of(128, Element::F32), (16, 32, 1, 1));
        assert_eq!(of(32, Element::F32), (16, 8, 1, 1));
        assert_eq!(of(8, Element::F32), (16, 2, 1, 1));
        assert_eq!(of(128, Element::F16), (16, 16, 1, 1));
        assert_eq!(of(512, Element::F32).3, 2);
    }

    #[test]
    fn rows_of_bytes_behind_half_precision_are_shifted() {
        let of = |dim, element, align| {
            Lanes::shifted(dim, element, align).map(|shape| (shape.vectors, shape.lanes, shape.passes))
        };
        let [int8, int4] = [Element::Int8(Scale::F16), Element::Int4(Scale::F16)];
        assert_eq!(of(128, int8, 4), Some((16, 8, 2)));
        assert_eq!(of(128, int4, 4), Some((8, 4, 2)));
        assert_eq!(of(8, int8, 16), Some((1, 1, 1)));
        assert_eq!(of(128, int8, 2), None);
        assert_eq!(of(124, int8, 4), None);
        assert_eq!(of(128, Element::Int8(Scale::F32), 8), None);
        assert_eq!(of(2048, int8, 4), None);
        for dim in (8..=1024).step_by(8) {
            let shape = Lanes::shifted(dim, int8, 4).unwrap();
            assert!(shape.lanes * shape.passes >= shape.vectors && shape.lanes <= 32, "{shape:?}");
            assert!(shape.busy() >= 0.65, "{dim}: {shape:?} {}", shape.busy());
        }
    }

    #[test]
    fn every_column_is_held_and_most_lanes_are_busy() {
        for element in Element::ALL {
            for dim in 1..700 {
                for align in [1, 2, 4, 8, 16, element.pitch(dim)] {
                    let align = align.max(element.align());
                    let shape = Lanes::new(dim, element, align);
                    assert!(shape.lanes * shape.passes * shape.ranges >= shape.vectors, "{shape:?}");
                    assert!(shape.vectors * shape.values >= dim && shape.lanes <= 32 && shape.passes <= 4);
                    assert!(shape.busy() >= 0.65, "{element} {dim}: {shape:?} {}", shape.busy());
                    // No load reaches behind the row by more than its padding to the load's size.
                    assert!(align.is_multiple_of(shape.bytes) && header(element).is_multiple_of(shape.bytes));
                }
            }
        }
    }
}
