//! Operands of register tiles: panels of B, a block of A.

use std::ops::Range;

use super::kernel::Strip;
use crate::shared::Shared;

/// Whether this many rows, `row_stride` floats apart, leave room in the sets of a first-level cache with this many
/// ways. Rows whose addresses differ by multiples of 4 KiB compete for the same set.
pub(super) fn keeps_apart(row_stride: usize, rows: usize, ways: usize) -> bool {
    const PERIOD: usize = 4096 / size_of::<f32>();
    let together = 1 << row_stride.trailing_zeros().min(PERIOD.trailing_zeros());
    rows.div_ceil(PERIOD / together) <= ways / 3
}

/// Columns of B for tiles: panels of those packed at a time, or all of B in place.
#[derive(Clone, Copy)]
pub(super) enum Panels<'a> {
    Packed(&'a [f32]),
    /// Panels that are packed in the stage before.
    Shared(Shared<'a, f32>),
    Placed {
        data: &'a [f32],
        step_stride: usize,
    },
}

impl<'a> Panels<'a> {
    /// The same panels, for reading.
    ///
    /// # Safety
    ///
    /// The panels are not packed any more.
    pub(super) unsafe fn packed(&self) -> Panels<'a> {
        match *self {
            // SAFETY: the panels are not written, by the caller's promise.
            Panels::Shared(shared) => Panels::Packed(unsafe { shared.all() }),
            other => other,
        }
    }

    /// Panels of a block of steps from step `from` on, and from the `col`-th of these columns on.
    pub(super) fn strip(
        &self,
        n_r: usize,
        all: &Range<usize>,
        block: &Range<usize>,
        from: usize,
        col: usize,
    ) -> Strip<'a> {
        match *self {
            Panels::Packed(data) => {
                let width = all.len().next_multiple_of(n_r);
                let start = width * block.start + col * block.len() + n_r * (from - block.start);
                Strip { data: &data[start..width * block.end], lane_stride: 1, step_stride: n_r }
            }
            Panels::Shared(_) => unreachable!("read before they are packed"),
            Panels::Placed { data, step_stride } => {
                let data = data.get(from * step_stride + all.start + col..).unwrap_or(&[]);
                Strip { data, lane_stride: 1, step_stride }
            }
        }
    }

    /// Number of floats from a panel to the next, for blocks of this many steps.
    pub(super) fn next(&self, n_r: usize, block: usize) -> usize {
        if matches!(self, Panels::Placed { .. }) { n_r } else { n_r * block }
    }
}

/// A block of A.
pub(super) enum Block<'a> {
    Packed(&'a [f32]),
    Placed { data: &'a [f32], lane_stride: usize, step_stride: usize },
}

impl Block<'_> {
    /// Number of floats from a panel to the next.
    pub(super) fn next(&self, m_r: usize, steps: &Range<usize>) -> usize {
        match *self {
            Block::Packed(_) => m_r * steps.len(),
            Block::Placed { lane_stride, .. } => m_r * lane_stride,
        }
    }

    /// Returns the lanes from `at` on.
    pub(super) fn panel(&self, at: usize, m_r: usize, steps: &Range<usize>) -> Strip<'_> {
        match *self {
            Block::Packed(data) => {
                Strip { data: data.get(at * steps.len()..).unwrap_or(&[]), lane_stride: 1, step_stride: m_r }
            }
            Block::Placed { data, lane_stride, step_stride } => {
                Strip { data: data.get(at * lane_stride..).unwrap_or(&[]), lane_stride, step_stride }
            }
        }
    }
}
