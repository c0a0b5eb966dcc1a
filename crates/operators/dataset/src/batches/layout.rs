//! Places of a batch's columns in its buffer.

use std::ops::Range;

use super::ALIGNMENT;
use crate::{Error, Features, Hotness, Slot, Slots};

/// Ranges of bytes of a batch's columns in its buffer; each starts at a multiple of [`ALIGNMENT`].
///
/// The starts are those of a full batch, so they are the same in all batches; only indices of columns with offsets, at the
/// end of the buffer, have other places in each batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Labels, `[rows]` of `f32`.
    pub label: Range<usize>,
    /// Dense values, `[rows, columns]` of `f32`, row by row.
    pub dense: Range<usize>,
    /// Categorical columns.
    pub categorical: Vec<ColumnLayout>,
    /// End of the last column.
    pub end: usize,
}

/// Ranges of bytes of a categorical column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnLayout {
    /// Indices, `[rows, hotness]` or `[values]` of `i32`.
    pub values: Range<usize>,
    /// Offsets, `[rows + 1]` of `i32`, if the hotness varies.
    pub offsets: Option<Range<usize>>,
}

/// End of the columns that are placed, and the places.
struct Placed {
    end: usize,
}

impl Placed {
    /// Places `count` numbers of 4 bytes, with room for `room` of them.
    fn place(&mut self, count: usize, room: usize) -> Range<usize> {
        let start = self.end;
        self.end = (start + 4 * room).next_multiple_of(ALIGNMENT);
        start..start + 4 * count
    }
}

impl Layout {
    /// Layout of `rows` rows where a full batch has `full`; `values` is the number of indices of a column with offsets.
    pub(crate) fn new(
        features: &Features,
        rows: usize,
        full: usize,
        mut values: impl FnMut(usize) -> Result<u64, Error>,
    ) -> Result<Layout, Error> {
        let mut placed = Placed { end: 0 };
        let label = placed.place(rows, full);
        let dense = features.dense.columns.len();
        let dense = placed.place(rows * dense, full * dense);
        let fixed = |column: &crate::Categorical| match column.hotness {
            Hotness::Fixed(hotness) => {
                let hotness = hotness as usize;
                ColumnLayout { values: placed.place(rows * hotness, full * hotness), offsets: None }
            }
            Hotness::Ragged => ColumnLayout { values: 0..0, offsets: Some(placed.place(rows + 1, full + 1)) },
        };
        let mut categorical: Vec<_> = features.categorical.iter().map(fixed).collect();
        for (place, column) in categorical.iter_mut().enumerate() {
            if column.offsets.is_some() {
                let values = values(place)?;
                if values > i32::MAX as u64 {
                    let column = features.categorical[place].name.clone();
                    return Err(Error::BatchValues { column, values });
                }
                column.values = placed.place(values as usize, values as usize);
            }
        }
        Ok(Layout { label, dense, categorical, end: placed.end })
    }

    /// Parts of a buffer's bytes for the columns, which are at least as long and aligned.
    pub(crate) fn slots<'a>(&self, bytes: &'a mut [u8]) -> Option<Slots<'a>> {
        let mut parts = Parts { bytes, start: 0 };
        let label = parts.next(&self.label)?;
        let dense = parts.next(&self.dense)?;
        let mut categorical = Vec::with_capacity(self.categorical.len());
        for column in &self.categorical {
            categorical.push(match &column.offsets {
                None => Slot { values: parts.next(&column.values)?, offsets: None },
                Some(offsets) => Slot { values: &mut [], offsets: Some(parts.next(offsets)?) },
            });
        }
        let ragged = categorical.iter_mut().zip(&self.categorical).filter(|(slot, _)| slot.offsets.is_some());
        for (slot, column) in ragged {
            slot.values = parts.next(&column.values)?;
        }
        Some(Slots { label, dense, categorical })
    }
}

/// The rest of a buffer, from byte `start` on.
struct Parts<'a> {
    bytes: &'a mut [u8],
    start: usize,
}

impl<'a> Parts<'a> {
    /// The numbers of a range that begins after those before.
    fn next<T: bytemuck::Pod>(&mut self, range: &Range<usize>) -> Option<&'a mut [T]> {
        let rest = std::mem::take(&mut self.bytes).get_mut(range.start - self.start..)?;
        let (part, rest) = rest.split_at_mut_checked(range.len())?;
        (self.bytes, self.start) = (rest, range.end);
        bytemuck::try_cast_slice_mut(part).ok()
    }
}
