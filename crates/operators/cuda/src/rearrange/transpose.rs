//! Transposes: tiles transposed in registers and shared memory, so that vectors are loaded and stored.

use super::plane::Plane;
use crate::geometry::Geometry;
use crate::{Grid, Source};

/// Bytes of a vector, where a layout allows it.
const VECTOR_BYTES: usize = 16;

/// Largest number of elements of a vector: a lane transposes as many rows of it.
const MOST: usize = 4;

/// Largest number of threads of a block.
const THREADS: usize = 256;

/// A transpose in tiles that begin where the plane begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transpose {
    plane: Plane,
    /// Elements of a vector.
    vector: usize,
    /// Columns and rows of a tile.
    tile: [usize; 2],
}

impl Transpose {
    /// The transpose of a plane, unless there are too many tiles.
    pub(super) fn new(plane: Plane) -> Option<Transpose> {
        let narrow = plane.narrow();
        let most = if narrow { 1 } else { longest_vector(plane.size()) };
        let vector = most.min(plane.together());
        // Lengths as measured: input lines of 256 bytes for whole vectors, half as much for others.
        let line = (256 / plane.size()).min(128);
        let line = if vector == most && !narrow { line } else { (line / 2).max(32) };
        let longest = if narrow { [128, 128] } else { [line, 64] };
        let [columns, rows] = plane.sides().map(usize::next_power_of_two);
        let tile = [columns.min(longest[0]), rows.min(longest[1])];
        let transpose = Transpose { plane, vector, tile };
        (transpose.blocks() <= i32::MAX as usize).then_some(transpose)
    }

    /// Alignment of both operands' addresses in bytes.
    pub(super) fn align(&self) -> usize {
        self.vector * self.plane.size()
    }

    /// Threads of a block: each transposes a square of vectors, or eight elements one by one.
    fn threads(&self) -> usize {
        let each = if self.vector == 1 { 8 } else { self.vector.pow(2) };
        (self.tile[0] * self.tile[1] / each).min(THREADS)
    }

    fn blocks(&self) -> usize {
        self.plane.tiles(self.tile, 0)
    }

    pub(super) fn grid(&self) -> Grid {
        Grid::line(self.blocks() as u32, self.threads() as u32)
    }

    pub(super) fn source(&self) -> Source {
        let source = Source::new("transpose.cu", include_str!("transpose.cu"))
            .define("VECTOR", self.vector)
            .define("TILE_COLUMNS", self.tile[0])
            .define("TILE_ROWS", self.tile[1])
            .define("THREADS", self.threads());
        self.plane.define(source)
    }

    /// Launch geometry, without registers.
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

/// Elements of a vector, where a layout allows it.
pub(super) fn longest_vector(size: usize) -> usize {
    MOST.min(VECTOR_BYTES / size)
}
