//! Structures that `backward.cu` reads.

use bytemuck::{Pod, Zeroable};

/// Kernel argument for a table.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct Entry {
    pub(super) weights: u64,
    pub(super) state: u64,
    pub(super) pitch: u32,
    pub(super) state_pitch: u32,
    pub(super) rows: u32,
    pub(super) column: u32,
    pub(super) kind: u32,
    pub(super) place: u32,
    pub(super) winners: u64,
}

/// Kernel arguments in addition to tables.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Sources {
    pub(super) pairs: u64,
    pub(super) windows: u64,
    pub(super) plans: u64,
    pub(super) tables: u64,
    pub(super) gradient: u64,
    pub(super) stride: u32,
    pub(super) bags: u32,
    pub(super) weights: u64,
    pub(super) bag_of: u64,
    pub(super) means: u64,
    pub(super) slots: u64,
    pub(super) runs: u64,
    pub(super) slot_pitch: u32,
    pub(super) unused: u32,
}

/// Partition of the blocks of `update_rows`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct BlockPartition {
    /// Number of blocks for the chunks of a span.
    pub(super) chunks: u32,
    /// Number of windows of a span; not 0.
    pub(super) span: u32,
    /// Number of all windows.
    pub(super) windows: u32,
}

impl BlockPartition {
    /// Number of blocks: one for each window, and those for the chunks of each span.
    pub(super) fn blocks(&self) -> u32 {
        self.windows.div_ceil(self.span.max(1)) * self.chunks + self.windows
    }
}
