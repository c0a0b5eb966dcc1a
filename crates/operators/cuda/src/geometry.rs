//! How kernels are launched, to be printed.

use std::fmt;

use crate::Grid;

/// The launch of a kernel: blocks and threads, what a lane does, what is checked, where lanes part.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    /// The kernel.
    pub kernel: &'static str,
    /// Blocks and threads.
    pub grid: Grid,
    /// What the axes of the grid stand for.
    pub axes: &'static str,
    /// Registers of a thread, once compiled.
    pub registers: Option<u32>,
    /// What the lanes of a warp do.
    pub lanes: String,
    /// The share of lanes that load something, where no bag is ragged.
    pub busy: f64,
    /// What is checked, and by whom.
    pub bounds: &'static str,
    /// Where lanes of a warp part, and what it costs.
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
