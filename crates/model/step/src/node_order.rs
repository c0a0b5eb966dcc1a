//! Memory by which the nodes of a captured graph are ordered.

use std::collections::BTreeMap;

use crate::ids::TensorId;

/// Order of the nodes of a captured graph by their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeOrder {
    /// Bytes of tensors in memory that a planner shares among them. Tensors without an entry have memory of their own.
    pub places: BTreeMap<TensorId, UsedBytes>,
}

/// A stretch of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedBytes {
    /// Number of its region: bytes of different regions are different.
    pub region: u32,
    /// First byte.
    pub start: u64,
    /// End of the last byte.
    pub end: u64,
    /// Distance of rows, and first and last byte of each row within it, where rows have gaps.
    pub columns: Option<[u64; 3]>,
}

impl UsedBytes {
    /// Whether two stretches share a byte.
    #[must_use]
    pub fn overlaps(&self, other: &UsedBytes) -> bool {
        let apart = match (self.columns, other.columns) {
            (Some([pitch, first, last]), Some([same, begin, end])) => {
                pitch == same && (last <= begin || end <= first)
            }
            _ => false,
        };
        self.region == other.region && self.start < other.end && other.start < self.end && !apart
    }

    /// The shortest stretch with both.
    #[must_use]
    pub fn merged(&self, other: &UsedBytes) -> UsedBytes {
        let columns = self.columns.filter(|own| other.columns.is_some_and(|columns| columns == *own));
        UsedBytes { start: self.start.min(other.start), end: self.end.max(other.end), columns, ..*self }
    }

    /// The stretch of elements of `size` bytes from byte `start` on, with `pad` elements behind each row. Strides are in elements. `None` where there
    /// are no elements.
    #[must_use]
    pub fn from_elements(
        region: u32,
        start: u64,
        shape: &[u64],
        strides: &[u64],
        [size, pad]: [u64; 2],
    ) -> Option<UsedBytes> {
        let mut last: u64 = 0;
        for (&n, &step) in shape.iter().zip(strides) {
            last = last.saturating_add(n.checked_sub(1)?.saturating_mul(step));
        }
        let end = start.saturating_add(last.saturating_add(pad + 1).saturating_mul(size));
        let columns = columns(shape, strides).map(|[pitch, width]| {
            let (pitch, width) = (pitch * size, (width + pad) * size);
            [pitch, start % pitch, start % pitch + width]
        });
        Some(UsedBytes { region, start, end, columns: columns.filter(|[pitch, _, last]| last <= pitch) })
    }

    /// The stretch of a tensor within its storage.
    pub(crate) fn within_storage(tensor: &steptime_aten::Tensor) -> UsedBytes {
        let all = UsedBytes { region: 0, start: 0, end: u64::MAX, columns: None };
        let sizes = |all: &[i64]| all.iter().map(|&n| u64::try_from(n)).collect::<Result<Vec<_>, _>>();
        let (Ok(shape), Ok(strides)) = (sizes(&tensor.shape), sizes(&tensor.strides)) else { return all };
        if tensor.is_sparse() || shape.len() != strides.len() {
            return all;
        }
        let size = tensor.dtype.size();
        let start = tensor.offset.saturating_mul(size);
        UsedBytes::from_elements(0, start, &shape, &strides, [size, 0]).unwrap_or(UsedBytes {
            start,
            end: start,
            ..all
        })
    }
}

/// Distance of the rows of a layout and their length, in elements: of a matrix, or of rows whose elements are matrices. `None` where rows have no
/// gap between them.
fn columns(shape: &[u64], strides: &[u64]) -> Option<[u64; 2]> {
    let (&[_, ref inner @ ..], &[pitch, ref steps @ ..]) = (shape, strides) else { return None };
    let mut width = 1;
    for (&size, &step) in inner.iter().zip(steps).rev() {
        if step != width {
            return None;
        }
        width *= size;
    }
    (width < pitch).then_some([pitch, width])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(start: u64, end: u64, columns: Option<[u64; 3]>) -> UsedBytes {
        UsedBytes { region: 0, start, end, columns }
    }

    #[test]
    fn columns_apart_share_no_byte() {
        let left = bytes(0, 100, Some([20, 0, 8]));
        assert!(!left.overlaps(&bytes(8, 108, Some([20, 8, 20]))));
        assert!(left.overlaps(&bytes(4, 104, Some([20, 4, 12]))));
        assert!(left.overlaps(&bytes(0, 100, Some([10, 8, 10]))), "another distance of rows");
        assert!(left.overlaps(&bytes(90, 200, None)) && !left.overlaps(&bytes(100, 200, None)));
        assert!(!left.overlaps(&UsedBytes { region: 1, ..left }));
        assert_eq!(left.merged(&bytes(90, 200, None)), bytes(0, 200, None));
    }

    #[test]
    fn rows_with_gaps_have_columns() {
        let tensor = steptime_aten::Tensor::strided(&[8, 3], &[5, 1], steptime_aten::Dtype::F32);
        assert_eq!(UsedBytes::within_storage(&tensor), bytes(0, 4 * 38, Some([20, 0, 12])));
        let whole = steptime_aten::Tensor::contiguous(&[8, 3], steptime_aten::Dtype::F32);
        assert_eq!(UsedBytes::within_storage(&whole), bytes(0, 96, None));
        assert_eq!(columns(&[8, 3], &[5, 1]), Some([5, 3]));
        assert_eq!(columns(&[8, 2, 4], &[16, 4, 1]), Some([16, 8]));
        assert_eq!(columns(&[8, 3], &[3, 1]), None);
        assert_eq!(columns(&[8, 2, 4], &[16, 5, 1]), None);
        assert_eq!(columns(&[3, 8], &[1, 3]), None);
        assert_eq!(columns(&[], &[]), None);
    }

    #[test]
    fn padded_rows_have_their_zeros() {
        let row = |pad| UsedBytes::from_elements(2, 40, &[8, 3], &[5, 1], [4, pad]);
        assert_eq!(row(0).map(|row| (row.end, row.columns)), Some((40 + 4 * 38, Some([20, 0, 12]))));
        assert_eq!(row(2).map(|row| (row.end, row.columns)), Some((40 + 4 * 40, Some([20, 0, 20]))));
        assert_eq!(UsedBytes::from_elements(2, 40, &[8, 0], &[5, 1], [4, 0]), None);
    }
}
