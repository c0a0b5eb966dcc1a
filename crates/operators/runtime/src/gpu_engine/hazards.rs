//! Order that memory demands: which parts of a step use the same bytes, at least one of them writing.

use steptime_step::UsedBytes;

use crate::program::Instruction;
use crate::slices::{Access, Region};

/// Bytes that a part uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    region: Region,
    start: usize,
    end: usize,
    /// Distance of rows, and first and last byte of each row within it, where rows have gaps.
    columns: Option<[usize; 3]>,
    writes: bool,
}

impl Bytes {
    /// The bytes of each use of an instruction; `None` for one of an empty tensor.
    pub(crate) fn of_uses(instruction: &Instruction) -> impl Iterator<Item = Option<Bytes>> + '_ {
        instruction.uses.iter().map(|one| {
            let place = instruction.at.get(one.arg.slot)?;
            let (layout, size) = (&one.arg.layout, one.arg.dtype.size() as usize);
            let last = layout.last()?;
            let pad = one.arg.pad;
            let (start, end) = (place.start + layout.offset() * size, place.start + (last + pad + 1) * size);
            let columns = columns(layout.shape(), layout.strides()).map(|[pitch, width]| {
                let [pitch, width] = [pitch * size, (width + pad) * size];
                [pitch, start % pitch, start % pitch + width]
            });
            let columns = columns.filter(|[pitch, _, last]| last <= pitch);
            Some(Bytes { region: place.region, start, end, columns, writes: place.access != Access::Read })
        })
    }

    /// The bytes that an instruction uses in each of its slots.
    pub(super) fn of_slots(instruction: &Instruction) -> Vec<Vec<Bytes>> {
        let mut all = vec![Vec::new(); instruction.at.len()];
        for (one, bytes) in instruction.uses.iter().zip(Bytes::of_uses(instruction)) {
            all.get_mut(one.arg.slot).into_iter().for_each(|own| own.extend(bytes));
        }
        for (own, place) in all.iter_mut().zip(&instruction.at) {
            if own.is_empty() {
                let (start, end) = (place.start, place.start + place.bytes);
                let writes = place.access != Access::Read;
                own.push(Bytes { region: place.region, start, end, columns: None, writes });
            }
        }
        all
    }

    /// The same bytes in the form of the model.
    pub(crate) fn used(&self) -> UsedBytes {
        UsedBytes {
            region: self.region as u32,
            start: self.start as u64,
            end: self.end as u64,
            columns: self.columns.map(|columns| columns.map(|at| at as u64)),
        }
    }

    /// Bytes of a region without gaps.
    #[cfg(test)]
    pub(super) fn new(region: Region, bytes: std::ops::Range<usize>, writes: bool) -> Bytes {
        Bytes { region, start: bytes.start, end: bytes.end, columns: None, writes }
    }

    /// The same bytes, which are only read.
    pub(super) fn read(&self) -> Bytes {
        Bytes { writes: false, ..*self }
    }

    /// Whether both have to run one after the other.
    pub(super) fn conflicts(&self, other: &Bytes) -> bool {
        let apart = match (self.columns, other.columns) {
            (Some([pitch, first, last]), Some([same, begin, end])) => {
                pitch == same && (last <= begin || end <= first)
            }
            _ => false,
        };
        (self.writes || other.writes)
            && self.region == other.region
            && self.start < other.end
            && other.start < self.end
            && !apart
    }
}

/// Distance of the rows of a layout and their length, in elements: of a matrix, or of rows whose elements are matrices. `None` where there is no
/// gap between rows.
fn columns(shape: &[usize], strides: &[usize]) -> Option<[usize; 2]> {
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

/// The parts of a step so far.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    parts: Vec<Vec<Bytes>>,
    /// Parts that each one waits for, directly or not.
    before: Vec<Vec<bool>>,
}

impl Hazards {
    /// The parts that one with these bytes has to wait for besides those `after` it waits for anyway, without those that others of them wait for.
    pub(super) fn find(&self, bytes: &[Bytes], after: &[usize]) -> Vec<usize> {
        let conflicts =
            |part: &Vec<Bytes>| part.iter().any(|one| bytes.iter().any(|other| one.conflicts(other)));
        let mut covered = vec![false; self.parts.len()];
        let mut found = Vec::new();
        for at in (0..self.parts.len()).rev() {
            if !covered[at] && (after.contains(&at) || conflicts(&self.parts[at])) {
                found.push(at);
                covered.iter_mut().zip(&self.before[at]).for_each(|(covered, before)| *covered |= before);
            }
        }
        found
    }

    /// Adds a part that waits for others.
    pub(super) fn push(&mut self, bytes: Vec<Bytes>, after: &[usize]) {
        let mut before = vec![false; self.parts.len()];
        for &at in after {
            before[at] = true;
            before.iter_mut().zip(&self.before[at]).for_each(|(own, before)| *own |= before);
        }
        self.parts.push(bytes);
        self.before.push(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(start: usize, end: usize, columns: Option<[usize; 3]>, writes: bool) -> Bytes {
        Bytes { region: Region::Arena, start, end, columns, writes }
    }

    #[test]
    fn rows_with_gaps_have_columns() {
        assert_eq!(columns(&[8, 3], &[5, 1]), Some([5, 3]));
        assert_eq!(columns(&[8, 2, 4], &[16, 4, 1]), Some([16, 8]));
        assert_eq!(columns(&[8, 3], &[3, 1]), None);
        assert_eq!(columns(&[8, 2, 4], &[16, 5, 1]), None);
        assert_eq!(columns(&[3, 8], &[1, 3]), None);
        assert_eq!(columns(&[], &[]), None);
    }

    #[test]
    fn columns_apart_do_not_conflict() {
        let left = bytes(0, 100, Some([20, 0, 8]), true);
        let right = bytes(8, 108, Some([20, 8, 20]), true);
        assert!(!left.conflicts(&right));
        assert!(left.conflicts(&bytes(4, 104, Some([20, 4, 12]), false)));
        assert!(left.conflicts(&bytes(0, 100, Some([10, 8, 10]), true)), "another distance of rows");
        assert!(
            left.conflicts(&bytes(90, 200, None, false)) && !left.conflicts(&bytes(100, 200, None, true))
        );
        assert!(!bytes(0, 8, None, false).conflicts(&bytes(0, 8, None, false)), "both read");
    }

    #[test]
    fn a_part_waits_for_the_last_of_a_chain_alone() {
        let mut hazards = Hazards::default();
        let (write, read) = (bytes(0, 8, None, true), bytes(0, 8, None, false));
        hazards.push(vec![write], &[]);
        hazards.push(vec![bytes(8, 16, None, true)], &[]);
        let next = hazards.find(&[write], &[]);
        assert_eq!(next, [0]);
        hazards.push(vec![write], &next);
        assert_eq!(hazards.find(&[read], &[]), [2], "part 2 has waited for part 0");
        assert_eq!(hazards.find(&[read], &[1]), [2, 1]);
        assert_eq!(hazards.find(&[bytes(16, 24, None, true)], &[]), [0_usize; 0]);
    }
}
