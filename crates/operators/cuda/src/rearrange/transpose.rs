//! Transposes: tiles transposed in registers and shared memory, so that both sides move vectors.

use std::fmt::Write;

use steptime_tensor::Joined;

use super::Plan;
use crate::geometry::Geometry;
use crate::{Grid, Source};

/// Bytes of a vector, where a layout allows it.
const VECTOR_BYTES: usize = 16;

/// Elements of a vector at most: a lane transposes as many rows of it.
const MOST: usize = 4;

/// Sides of a tile below which it is made longer, and nothing is gained by vectors.
const NARROW: usize = 32;

/// Threads of a block at most.
const THREADS: usize = 256;

/// A transpose: the last dimension's elements are neighbours in the output, those of `column` in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transpose {
    plan: Plan,
    column: usize,
    /// Elements of a vector.
    vector: usize,
    /// Columns and rows of a tile.
    tile: [usize; 2],
}

impl Transpose {
    /// Of these layouts, if they need one.
    pub(super) fn new(plan: &Plan) -> Option<Transpose> {
        let Joined { shape, strides } = &plan.joined;
        let last = shape.len().checked_sub(1)?;
        let (from, to) = (&strides[0], &strides[1]);
        let long = |axis: usize| (4..1 << 31).contains(&shape[axis]);
        let column = (0..last).find(|&axis| from[axis] == 1 && long(axis))?;
        // Smaller planes lie in the first-level cache as a whole.
        let large = shape[column].saturating_mul(shape[last]) >= 1024;
        if !(from[last] > 1 && to[last] == 1 && long(last) && large) {
            return None;
        }
        // Whatever is added to a vector's place is a multiple of its length.
        let others = (0..=last).filter(|&axis| axis != column).map(|axis| from[axis]);
        let others = others.chain((0..last).map(|axis| to[axis])).chain(plan.offsets);
        let all = others.chain([shape[last], shape[column]]).fold(0, |all, one| all | one);
        let sides = [column, last].map(|axis| shape[axis].next_power_of_two());
        let narrow = sides.iter().any(|&side| side < NARROW);
        let most = if narrow { 1 } else { MOST.min(VECTOR_BYTES / plan.size) };
        let vector = most.min(1 << all.trailing_zeros().min(4));
        // As measured: lines of 256 bytes of the input for whole vectors, half as much for others.
        let line = (256 / plan.size).min(128);
        let line = if vector == most && !narrow { line } else { (line / 2).max(32) };
        let longest = if narrow { [128, 128] } else { [line, 64] };
        let tile = [sides[0].min(longest[0]), sides[1].min(longest[1])];
        let transpose = Transpose { plan: plan.clone(), column, vector, tile };
        (transpose.blocks() <= i32::MAX as usize).then_some(transpose)
    }

    /// Bytes that both operands' addresses must be multiples of.
    pub(super) fn align(&self) -> usize {
        self.vector * self.plan.size
    }

    /// Threads of a block: each transposes a square of vectors, or eight elements one by one.
    fn threads(&self) -> usize {
        let each = if self.vector == 1 { 8 } else { self.vector.pow(2) };
        (self.tile[0] * self.tile[1] / each).min(THREADS)
    }

    /// Tiles of all columns, rows and other dimensions.
    fn blocks(&self) -> usize {
        let shape = &self.plan.joined.shape;
        let tiles = |(axis, &size): (usize, &usize)| match axis {
            axis if axis == self.column => size.div_ceil(self.tile[0]),
            axis if axis == shape.len() - 1 => size.div_ceil(self.tile[1]),
            _ => size,
        };
        shape.iter().enumerate().map(tiles).product()
    }

    pub(super) fn grid(&self) -> Grid {
        Grid::line(self.blocks() as u32, self.threads() as u32)
    }

    pub(super) fn source(&self) -> Source {
        let Joined { shape, strides } = &self.plan.joined;
        let (row, column) = (shape.len() - 1, self.column);
        let mut axes = String::new();
        for axis in (0..row).rev().filter(|&axis| axis != column) {
            let _ = write!(axes, "AXIS({}u,{}ull,{}ull)", shape[axis], strides[0][axis], strides[1][axis]);
        }
        Source::new("transpose.cu", include_str!("transpose.cu"))
            .define("ELEMENT", super::device_name(self.plan.size))
            .define("VECTOR", self.vector)
            .define("TILE_COLUMNS", self.tile[0])
            .define("TILE_ROWS", self.tile[1])
            .define("THREADS", self.threads())
            .define("COLUMNS", format!("{}u", shape[column]))
            .define("ROWS", format!("{}u", shape[row]))
            .define("READ", strides[0][row])
            .define("WRITE", strides[1][column])
            .define("FROM", self.plan.offsets[0])
            .define("TO", self.plan.offsets[1])
            .define("AXES", axes)
    }

    /// How it is launched, but for its registers.
    pub(super) fn geometry(&self) -> Geometry {
        let [columns, rows] = self.tile;
        let bytes = self.align();
        let each = columns * rows / (self.threads() * self.vector);
        Geometry {
            kernel: "transpose",
            grid: self.grid(),
            axes: "x tiles, those along the output's rows first",
            registers: None,
            lanes: format!(
                "{each} x {bytes} B a thread of tiles of {columns} x {rows}, transposed in registers and shared memory"
            ),
            busy: 1.0,
            bounds: "shapes by the host",
            divergence: "none but in tiles at the edge",
        }
    }
}
