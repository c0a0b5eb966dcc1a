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
        let best = whole.chain(cut).filter(|&(lanes, ..)| lanes <= 32).map(|(lanes, passes, ranges)| {
            let shape = Lanes { bytes, values, vectors, lanes, passes, ranges };
            // A range more reads all indices once more.
            (shape.busy() - PASS_COST * (passes - 1) as f64 - 0.02 * (ranges - 1).min(4) as f64, shape)
        });
        let one = Lanes { bytes, values, vectors, lanes: 32, passes: 1, ranges: vectors.div_ceil(32) };
        best.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(one, |(_, shape)| shape)
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
