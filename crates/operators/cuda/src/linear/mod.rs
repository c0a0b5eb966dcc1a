//! The part of a linear layer's backward pass that is no product: the slope of the ReLU behind the layer, and the gradient of its bias, in one
//! pass over the gradient of the output.

use crate::{Args, Buffer, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: usize = 256;
/// Blocks for each multiprocessor.
const BLOCKS: usize = 8;
/// Largest number of parts of a sum.
const PARTS: usize = 1024;

/// A matrix of rows that are a stride apart.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// Position of the first element.
    pub start: usize,
    /// Elements from row to row.
    pub stride: usize,
}

/// Results of a [`Slope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Results {
    /// `dz = y > 0 ? dy : 0`.
    pub slope: bool,
    /// Sums of the columns of `dz`, or of `dy` without a slope.
    pub sums: bool,
}

/// Operands of a [`Slope`], each with the place of its rows.
#[derive(Debug)]
pub struct Operands<'a> {
    /// Gradient of the output, `[B, N]`.
    pub dy: (Slice<'a, f32>, Rows),
    /// Output of the ReLU, `[B, N]`, with a slope.
    pub y: Option<(Slice<'a, f32>, Rows)>,
    /// Result with the slope, `[B, N]`.
    pub dz: Option<(SliceMut<'a, f32>, Rows)>,
    /// Result of the sums, `[N]`.
    pub sums: Option<SliceMut<'a, f32>>,
}

/// The slope of a ReLU, and the sums over rows, compiled for `[B, N]`. Bit-identical in each run.
#[derive(Debug)]
pub struct Slope {
    slope: Kernel,
    add: Kernel,
    results: Results,
    rows: usize,
    columns: usize,
    rows_of_block: usize,
    vector: usize,
    grid: Grid,
    parts: Buffer<f32>,
}

/// Compile-time parameters: neighbouring columns of a lane, lanes of a row, and groups of lanes in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    vector: usize,
    lanes: usize,
    rows: usize,
}

impl Shape {
    fn new(columns: usize, aligned: bool) -> Shape {
        let vector = if aligned && columns.is_multiple_of(4) { 4 } else { 1 };
        let lanes = columns.div_ceil(vector).next_power_of_two().min(32);
        Shape { vector, lanes, rows: THREADS / lanes }
    }

    fn source(self, columns: usize, results: Results) -> Source {
        Source::new("slope.cu", include_str!("slope.cu"))
            .define("VECTOR", self.vector)
            .define("LANES", self.lanes)
            .define("ROWS", self.rows)
            .define("COLUMNS", columns)
            .define("RELU", u8::from(results.slope))
            .define("SUMS", u8::from(results.sums))
    }
}

impl Slope {
    /// Compiles the pass for `[rows, columns]`. With `aligned`, all rows begin at multiples of four floats.
    ///
    /// # Errors
    ///
    /// No row or no column; no compiler; not enough memory.
    pub fn new(
        device: &Device,
        [rows, columns]: [usize; 2],
        results: Results,
        aligned: bool,
    ) -> Result<Slope, Error> {
        if rows == 0 || columns == 0 || u32::try_from(columns).is_err() {
            return Err(Error::Unsupported {
                what: format!("the slope of a layer with [{rows}, {columns}] outputs"),
                remedy: "give at least one row and one column",
            });
        }
        let shape = Shape::new(columns, aligned);
        let module = device.load(&shape.source(columns, results))?;
        let across = columns.div_ceil(shape.lanes * shape.vector);
        let blocks = (BLOCKS * device.multiprocessors() as usize).div_ceil(across).clamp(1, PARTS);
        let rows_of_block = rows.div_ceil(blocks).next_multiple_of(shape.rows);
        let down = rows.div_ceil(rows_of_block);
        let parts = if results.sums { down * columns } else { 0 };
        Ok(Slope {
            slope: module.kernel("slope")?,
            add: module.kernel("add_parts")?,
            results,
            rows,
            columns,
            rows_of_block,
            vector: shape.vector,
            grid: Grid::plane(across as u32, down as u32, (shape.lanes * shape.rows) as u32),
            parts: Buffer::uninit(device, parts)?,
        })
    }

    /// Runs the pass.
    ///
    /// # Errors
    ///
    /// Operands that are missing, too short, or not aligned as compiled for.
    pub fn run(&mut self, stream: &Stream, operands: Operands<'_>) -> Result<(), Error> {
        let Operands { dy, y, mut dz, sums } = operands;
        let none = Rows { start: 0, stride: 0 };
        let (y_slice, y_rows) = y.map_or((None, none), |(slice, rows)| (Some(slice), rows));
        let dz_rows = dz.as_ref().map_or(none, |(_, rows)| *rows);
        let is_given = y_slice.is_some() == self.results.slope && dz.is_some() == self.results.slope;
        if !is_given || sums.is_some() != self.results.sums {
            return Err(Error::Unsupported {
                what: format!("a pass for {:?} with other operands", self.results),
                remedy: "give the output and the result with a slope, and the sums, as compiled for",
            });
        }
        let dz_slice = dz.as_ref().map(|(slice, _)| slice.as_ref());
        for (slice, rows) in [(Some(dy.0), dy.1), (y_slice, y_rows), (dz_slice, dz_rows)] {
            slice.map_or(Ok(()), |slice| self.check(slice, rows))?;
        }
        if let Some(found) = sums.as_ref().map(SliceMut::len).filter(|&found| found < self.columns) {
            return Err(Error::Size { what: "the sums of columns", found, needed: self.columns });
        }
        let at = |slice: Option<Slice<'_, f32>>, rows: Rows| {
            slice.map_or(0, |slice| slice.address() + 4 * rows.start as u64)
        };
        let dz_at = at(dz_slice, dz_rows);
        let args = Args::new()
            .value(at(Some(dy.0), dy.1))
            .value(dy.1.stride as u64)
            .value(at(y_slice, y_rows))
            .value(y_rows.stride as u64)
            .value(dz_at)
            .value(dz_rows.stride as u64)
            .own(self.parts.as_ref())
            .value(self.rows as u64)
            .value(self.rows_of_block as u64)
            .reads(dy.0);
        let args = y_slice.into_iter().fold(args, Args::reads);
        let args = dz.iter_mut().fold(args, |args, (slice, _)| args.writes(slice.as_ref()));
        // SAFETY: the arguments are those of `slope`; each operand has the rows and columns, as was checked, and there is room for the sums
        // of each block. All memory is named.
        unsafe { self.slope.launch(stream, self.grid, args)? };
        let Some(mut sums) = sums else { return Ok(()) };
        let count = self.grid.blocks[1] as i32;
        let args = Args::new().own(self.parts.as_ref()).value(count).slice_mut(&mut sums);
        let grid = Grid::line(self.columns.div_ceil(32) as u32, 256);
        // SAFETY: the arguments are those of `add_parts`; the sums have a place for each column. All memory is named.
        unsafe { self.add.launch(stream, grid, args) }
    }

    fn check(&self, slice: Slice<'_, f32>, rows: Rows) -> Result<(), Error> {
        let last = (self.rows - 1).saturating_mul(rows.stride);
        let needed = rows.start.saturating_add(last).saturating_add(self.columns);
        if slice.len() < needed {
            return Err(Error::Size { what: "an operand of a layer's slope", found: slice.len(), needed });
        }
        let address = slice.address() + 4 * rows.start as u64;
        if self.vector == 4 && !(address.is_multiple_of(16) && rows.stride.is_multiple_of(4)) {
            return Err(Error::Unsupported {
                what: "rows that are not aligned for a layer's slope of aligned ones".to_owned(),
                remedy: "make the `Slope` for rows that are not aligned",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestCompiler;

    #[test]
    fn a_block_is_full_for_any_number_of_columns() {
        for columns in [1, 2, 13, 16, 64, 128, 479, 1024] {
            for aligned in [false, true] {
                let shape = Shape::new(columns, aligned);
                assert_eq!(shape.lanes * shape.rows, THREADS, "{columns}");
            }
        }
        assert_eq!(Shape::new(1024, true), Shape { vector: 4, lanes: 32, rows: 8 });
        assert_eq!(Shape::new(1, true), Shape { vector: 1, lanes: 1, rows: 256 });
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        let all = [[true, true], [true, false], [false, true]];
        for (columns, [slope, sums]) in [1, 13, 1024].into_iter().zip(all) {
            let source = Shape::new(columns, true).source(columns, Results { slope, sums });
            compiler.build(&source);
        }
    }
}
