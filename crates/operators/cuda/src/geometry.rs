//! Launch geometry of kernels, for reports.

use std::fmt;

use crate::Grid;

/// The launch of a kernel: blocks and threads, work of a lane, bounds checks, divergence.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// The kernel.
    pub kernel: &'static str,
    /// Blocks and threads.
    pub grid: Grid,
    /// Meaning of the grid's axes.
    pub axes: &'static str,
    /// Registers of a thread, once compiled.
    pub registers: Option<u32>,
    /// Work of the lanes of a warp.
    pub lanes: String,
    /// Share of lanes that load something, where all bags have one length.
    pub busy: f64,
    /// Bounds checks, and where they are made.
    pub bounds: &'static str,
    /// Divergence of lanes within a warp, and its cost.
    pub divergence: &'static str,
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.grid.blocks;
        let threads: u32 = self.grid.threads.iter().product();
        writeln!(f, "{}: grid {x} x {y} x {z} ({}), {threads} threads a block", self.kernel, self.axes)?;
        if let Some(registers) = self.registers {
            writeln!(f, "  registers   {registers} a thread")?;
        }
        writeln!(f, "  lanes       {}; {:.0} % busy", self.lanes, 100.0 * self.busy)?;
        writeln!(f, "  bounds      {}", self.bounds)?;
        write!(f, "  divergence  {}", self.divergence)
    }
}
