//! Resources of a running instruction.

use steptime_ops::Cpu;

use crate::group::Rank;
use crate::numbers::Numbers;
use crate::slices::Slices;

/// Resources of a running instruction.
pub(crate) struct Run<'r, 'm> {
    pub(crate) cpu: &'r Cpu,
    /// The memory of the instruction.
    pub(crate) memory: Slices<'m>,
    pub(crate) numbers: &'r Numbers,
    /// The rank of its job, where it is one of several.
    pub(crate) group: Option<&'r Rank>,
    /// Number of the step, from 1.
    pub(crate) step: u64,
}
