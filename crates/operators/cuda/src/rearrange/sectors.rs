//! Transposes whose output lines begin anywhere: no sector of memory is written in two parts by two blocks.

use super::plane::Plane;
use super::transpose::longest_vector;
use crate::geometry::Geometry;
use crate::{Grid, Source};

/// Bytes of a memory write.
const SECTOR: usize = 32;

/// Bytes of an output line up to which one block writes all of it.
const WHOLE: usize = 832;

/// Number of rows up to which tiles of [`super::transpose::Transpose`] hold whole output lines.
const SHORT: usize = 32;

/// Columns of a tile that ends at a sector boundary.
const COLUMNS: usize = 64;

/// A transpose of single elements, in tiles that end at boundaries of sectors, or that hold whole lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sectors {
    plane: Plane,
    /// Columns and rows of a tile.
    tile: [usize; 2],
    /// Number of elements of a sector; 1 where tiles hold whole lines.
    sector: usize,
    threads: usize,
}

impl Sectors {
    /// A transpose of a plane with 4 or 8 bytes an element whose output lines begin within sectors, if vectors do not
    /// fit it.
    pub(super) fn new(plane: &Plane) -> Option<Sectors> {
        let size = plane.size();
        let vectors = plane.together() >= longest_vector(size);
        if ![4, 8].contains(&size) || plane.narrow() || vectors || plane.lines_begin_at(SECTOR) {
            return None;
        }
        let [columns, rows] = plane.sides();
        // Whether at least two thirds of the tiles' columns exist.
        let full = 3 * columns >= 2 * columns.next_multiple_of(COLUMNS);
        // Thresholds as measured.
        let (tile, sector, threads) = if rows <= SHORT {
            return None;
        } else if rows * size <= WHOLE {
            ([columns.div_ceil(columns.div_ceil(48)), rows], 1, if rows > 80 { 512 } else { 256 })
        } else if !full {
            return None;
        } else {
            ([COLUMNS, 32], SECTOR / size, 512)
        };
        let sectors = Sectors { plane: plane.clone(), tile, sector, threads };
        (sectors.blocks() <= i32::MAX as usize).then_some(sectors)
    }

    /// Alignment of both operands' addresses in bytes.
    pub(super) fn align(&self) -> usize {
        self.plane.size()
    }

    fn blocks(&self) -> usize {
        self.plane.tiles(self.tile, self.sector - 1)
    }

    pub(super) fn grid(&self) -> Grid {
        Grid::line(self.blocks() as u32, self.threads as u32)
    }

    pub(super) fn source(&self) -> Source {
        let source = Source::new("sectors.cu", include_str!("sectors.cu"))
            .define("SECTOR", format!("{}u", self.sector))
            .define("TILE_COLUMNS", format!("{}u", self.tile[0]))
            .define("TILE_ROWS", format!("{}u", self.tile[1]))
            .define("THREADS", format!("{}u", self.threads));
        self.plane.define(source)
    }

    /// Launch geometry, without registers.
    pub(super) fn geometry(&self) -> Geometry {
        let [columns, rows] = self.tile;
        let each = (columns * rows).div_ceil(self.threads);
        let bytes = self.plane.size();
        let end = if self.sector == 1 { "whole lines of the output" } else { "whole sectors of the output" };
        Geometry {
            kernel: "transpose",
            grid: self.grid(),
            axes: "x tiles, those along the output's rows first",
            registers: None,
            lanes: format!(
                "{each} x {bytes} B a thread of tiles of {columns} x {rows}, {end}, through shared memory"
            ),
            busy: 1.0,
            bounds: "shapes by the host",
            divergence: "where lines begin and end",
        }
    }
}
