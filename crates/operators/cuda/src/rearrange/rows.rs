//! Copies whose innermost elements stay in their order: in cells of up to 16 bytes.

use std::fmt::Write;

use steptime_tensor::JoinedLayouts;

use super::Plan;
use crate::geometry::Geometry;
use crate::{Error, Grid, Source};

/// Threads of a block.
const THREADS: usize = 128;

/// Largest number of bytes of a cell, and of all cells of a thread.
const BYTES: usize = 16;

/// A copy of cells: runs of elements that are contiguous on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    /// Strides and offsets in cells.
    plan: Plan,
}

impl Rows {
    pub(super) fn new(plan: &Plan) -> Result<Rows, Error> {
        let mut plan = plan.clone();
        let JoinedLayouts { shape, strides } = &mut plan.joined;
        if shape.is_empty() {
            shape.push(1);
            strides.iter_mut().for_each(|strides| strides.push(1));
        }
        let last = shape.len() - 1;
        if strides.iter().all(|strides| strides[last] == 1) {
            let others = strides.iter().flat_map(|strides| &strides[..last]);
            let all = others.chain(&plan.offsets).fold(shape[last], |all, one| all | one);
            let most = BYTES / plan.size;
            let elements = most.min(1 << all.trailing_zeros().min(4));
            shape[last] /= elements;
            for strides in strides.iter_mut() {
                strides[..last].iter_mut().for_each(|stride| *stride /= elements);
            }
            plan.offsets.iter_mut().for_each(|offset| *offset /= elements);
            plan.size *= elements;
        }
        let rows = Rows { plan };
        if rows.blocks() > i32::MAX as usize {
            return Err(Error::Unsupported {
                what: format!("a copy of {:?}", rows.plan.joined.shape),
                remedy: "cut it into parts of fewer than 2^38 elements",
            });
        }
        Ok(rows)
    }

    /// Alignment of both operands' addresses in bytes.
    pub(super) fn align(&self) -> usize {
        self.plan.size
    }

    fn count(&self) -> usize {
        self.plan.joined.shape.iter().product()
    }

    /// Number of cells of a thread.
    fn cells(&self) -> usize {
        BYTES / self.plan.size
    }

    fn blocks(&self) -> usize {
        self.count().div_ceil(THREADS * self.cells())
    }

    pub(super) fn grid(&self) -> Grid {
        Grid::line(self.blocks() as u32, THREADS as u32)
    }

    pub(super) fn source(&self) -> Source {
        let JoinedLayouts { shape, strides } = &self.plan.joined;
        // A thread of the last block counts past the end.
        let wide = self.blocks() * THREADS * self.cells() > u32::MAX as usize;
        let suffix = if wide { "ull" } else { "u" };
        let mut axes = String::new();
        for axis in (0..shape.len()).rev() {
            let _ =
                write!(axes, "AXIS({}{suffix},{}ull,{}ull)", shape[axis], strides[0][axis], strides[1][axis]);
        }
        Source::new("rows.cu", include_str!("rows.cu"))
            .define("CELL", super::device_name(self.plan.size))
            .define("CELLS", self.cells())
            .define("THREADS", THREADS)
            .define("COUNT", format!("{}{suffix}", self.count()))
            .define("PLACE", if wide { "u64" } else { "u32" })
            .define("FROM", self.plan.offsets[0])
            .define("TO", self.plan.offsets[1])
            .define("AXES", axes)
    }

    /// Launch geometry, without registers.
    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            kernel: "rows",
            grid: self.grid(),
            axes: "x cells, in the order of the output",
            registers: None,
            lanes: format!("{} x {} B a lane", self.cells(), self.plan.size),
            busy: 1.0,
            bounds: "shapes by the host",
            divergence: "none but in the last block",
        }
    }
}
