//! Sums that threads share: each chain of terms is summed separately, then the chains are added in order.
//!
//! The first chain goes to C, each other to its own slab. A single thread that sums the chains one after the other does
//! the same additions, so the result does not depend on the number of threads.

use std::ops::Range;

use super::Activation;
use super::buffer::LINE;
use super::kernel::Window;
use crate::arch::Arch;
use crate::shared::Shared;

/// Buffer for the sums of all chains but the first, until they are added.
#[derive(Clone, Copy)]
pub(super) struct Chains<'a> {
    slabs: Shared<'a, f32>,
    /// Number of chains, including the first.
    count: usize,
    rows: usize,
    /// Floats from a row to the next.
    stride: usize,
}

impl<'a> Chains<'a> {
    /// Number of floats of the slabs for `count` chains of `rows x cols` sums.
    pub(super) fn len(count: usize, rows: usize, cols: usize) -> usize {
        (count - 1) * rows * Chains::stride(cols)
    }

    /// Slabs in a buffer of [`len`](Chains::len) floats.
    pub(super) fn new(buffer: &'a mut [f32], count: usize, rows: usize, cols: usize) -> Chains<'a> {
        Chains { slabs: Shared::new(buffer), count, rows, stride: Chains::stride(cols) }
    }

    /// One cache line more than needed, so that rows do not compete for the same lines.
    fn stride(cols: usize) -> usize {
        cols.next_multiple_of(LINE) + LINE
    }

    /// The window where a chain from the second on stores its sums of some rows and columns.
    ///
    /// # Safety
    ///
    /// No other window or slice of this chain that is in use at the same time, on any thread, overlaps it.
    pub(super) unsafe fn window(&self, chain: usize, rows: &Range<usize>, cols: &Range<usize>) -> Window<'a> {
        let start = self.at(chain, rows.start) + cols.start;
        // SAFETY: chains have their own slabs; within one, the caller's promise.
        unsafe { Window::over(self.slabs, start, rows.len(), cols.len(), self.stride, 1) }
    }

    /// Adds the chains to the first, which is in `c` for some of these rows and columns, and applies the activation.
    ///
    /// # Safety
    ///
    /// The sums of these rows and columns are not written any more.
    ///
    /// # Panics
    ///
    /// Rows of `c` are not contiguous.
    pub(super) unsafe fn add(
        &self,
        arch: Arch,
        rows: &Range<usize>,
        cols: &Range<usize>,
        c: &mut Window<'_>,
        activation: Activation,
    ) {
        // SAFETY: only read from here on, by the caller's promise.
        let slabs = unsafe { self.slabs.all() };
        for row in rows.clone() {
            let sums = c.row_mut(row - rows.start);
            for chain in 1..self.count {
                let others = &slabs[self.at(chain, row) + cols.start..][..cols.len()];
                // Adds zero, as a stored tile adds its bias: two negative zeros make a positive one there.
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other + 0.0);
            }
            activation.apply(arch, sums);
        }
    }

    fn at(&self, chain: usize, row: usize) -> usize {
        ((chain - 1) * self.rows + row) * self.stride
    }
}
