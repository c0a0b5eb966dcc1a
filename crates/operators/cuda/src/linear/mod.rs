//! The part of a linear layer's backward pass that is no product: the slope of the ReLU behind the layer, and the gradient of its bias, in one
//! pass over the gradient of the output.

use std::any::TypeId;
use std::marker::PhantomData;

use crate::float::{FLOATS, vector};
use crate::{Args, Buffer, Device, Error, Float, Grid, Kernel, Slice, SliceMut, Source, Stream};

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
pub struct Operands<'a, T = f32, D = T> {
    /// Gradient of the output, `[B, N]`.
    pub dy: (Slice<'a, T>, Rows),
    /// Output of the ReLU, `[B, N]`, with a slope.
    pub y: Option<(Slice<'a, D>, Rows)>,
    /// Result with the slope, `[B, N]`; without one, where `D` is another type than `T`, the converted gradient.
    pub dz: Option<(SliceMut<'a, D>, Rows)>,
    /// Result of the sums, `[N]`.
    pub sums: Option<SliceMut<'a, f32>>,
}

/// The slope of a ReLU, and the sums over rows, compiled for `[B, N]`. Bit-identical in each run.
///
/// The gradient has elements `T`; the output of the ReLU and the result have elements `D`. Where `D` is another type than
/// `T`, a pass without a slope converts the gradient to `D`. Sums are of numbers that are not rounded to `D`.
#[derive(Debug)]
pub struct Slope<T = f32, D = T> {
    slope: Kernel,
    add: Kernel,
    results: Results,
    rows: usize,
    columns: usize,
    rows_of_block: usize,
    vector: usize,
    grid: Grid,
    parts: Buffer<f32>,
    of: PhantomData<fn(T) -> D>,
}

/// Compile-time parameters: neighbouring columns of a lane, lanes of a row, and groups of lanes in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    vector: usize,
    lanes: usize,
    rows: usize,
}

impl Shape {
    /// The shape for operands with elements of these sizes in bytes.
    fn new(columns: usize, sizes: [usize; 2], aligned: bool) -> Shape {
        let vector = vector(columns, &sizes, aligned);
        let lanes = columns.div_ceil(vector).next_power_of_two().min(32);
        Shape { vector, lanes, rows: THREADS / lanes }
    }

    fn source<T: Float, D: Float>(self, columns: usize, results: Results) -> Source {
        let stores = Slope::<T, D>::stores(results);
        Source::new("slope.cu", [FLOATS, include_str!("slope.cu")].concat())
            .define("GRADIENT", T::DEVICE_NAME)
            .define("RESULT", D::DEVICE_NAME)
            .define("STORES", u8::from(stores))
            .define("VECTOR", self.vector)
            .define("LANES", self.lanes)
            .define("ROWS", self.rows)
            .define("COLUMNS", columns)
            .define("RELU", u8::from(results.slope))
            .define("SUMS", u8::from(results.sums))
    }
}

impl<T: Float, D: Float> Slope<T, D> {
    /// Whether the pass has the result `dz`.
    fn stores(results: Results) -> bool {
        results.slope || TypeId::of::<T>() != TypeId::of::<D>()
    }

    /// Compiles the pass for `[rows, columns]`. With `aligned`, all rows begin at multiples of 16 bytes.
    ///
    /// # Errors
    ///
    /// No row or no column; no compiler; not enough memory.
    pub fn new(
        device: &Device,
        [rows, columns]: [usize; 2],
        results: Results,
        aligned: bool,
    ) -> Result<Slope<T, D>, Error> {
        if rows == 0 || columns == 0 || u32::try_from(columns).is_err() {
            return Err(Error::Unsupported {
                what: format!("the slope of a layer with [{rows}, {columns}] outputs"),
                remedy: "give at least one row and one column",
            });
        }
        let shape = Shape::new(columns, [size_of::<T>(), size_of::<D>()], aligned);
        let module = device.load(&shape.source::<T, D>(columns, results))?;
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
            of: PhantomData,
        })
    }

    /// Runs the pass.
    ///
    /// # Errors
    ///
    /// Operands that are missing, too short, or not aligned as compiled for.
    pub fn run(&mut self, stream: &Stream, operands: Operands<'_, T, D>) -> Result<(), Error> {
        let Operands { dy, y, mut dz, sums } = operands;
        let none = Rows { start: 0, stride: 0 };
        let (y_slice, y_rows) = y.map_or((None, none), |(slice, rows)| (Some(slice), rows));
        let dz_rows = dz.as_ref().map_or(none, |(_, rows)| *rows);
        let stores = Self::stores(self.results);
        let is_given = y_slice.is_some() == self.results.slope && dz.is_some() == stores;
        if !is_given || sums.is_some() != self.results.sums {
            return Err(Error::Unsupported {
                what: format!("a pass for {:?} with other operands", self.results),
                remedy: "give the output and the result with a slope, the result of a conversion, and the sums, as compiled for",
            });
        }
        let dz_slice = dz.as_ref().map(|(slice, _)| slice.as_ref());
        let dy_at = self.address(dy.0, dy.1)?;
        let y_at = y_slice.map_or(Ok(0), |slice| self.address(slice, y_rows))?;
        let dz_at = dz_slice.map_or(Ok(0), |slice| self.address(slice, dz_rows))?;
        if let Some(found) = sums.as_ref().map(SliceMut::len).filter(|&found| found < self.columns) {
            return Err(Error::Size { what: "the sums of columns", found, needed: self.columns });
        }
        let args = Args::new()
            .value(dy_at)
            .value(dy.1.stride as u64)
            .value(y_at)
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

    /// The address of an operand's first row. Fails where it is too short, or not aligned as compiled for.
    fn address<V: Float>(&self, slice: Slice<'_, V>, rows: Rows) -> Result<u64, Error> {
        let last = (self.rows - 1).saturating_mul(rows.stride);
        let needed = rows.start.saturating_add(last).saturating_add(self.columns);
        if slice.len() < needed {
            return Err(Error::Size { what: "an operand of a layer's slope", found: slice.len(), needed });
        }
        let bytes = |elements: usize| (elements * size_of::<V>()) as u64;
        let align = bytes(self.vector).min(16);
        let address = slice.address() + bytes(rows.start);
        if self.vector > 1 && !(address.is_multiple_of(align) && bytes(rows.stride).is_multiple_of(align)) {
            return Err(Error::Unsupported {
                what: "rows that are not aligned for a layer's slope of aligned ones".to_owned(),
                remedy: "make the `Slope` for rows that are not aligned",
            });
        }
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::TestCompiler;

    #[test]
    fn a_block_is_full_for_any_number_of_columns() {
        for columns in [1, 2, 13, 16, 64, 128, 479, 1024] {
            for (aligned, sizes) in [(false, [4, 4]), (true, [4, 4]), (true, [2, 2]), (true, [4, 2])] {
                let shape = Shape::new(columns, sizes, aligned);
                assert_eq!(shape.lanes * shape.rows, THREADS, "{columns}");
            }
        }
        assert_eq!(Shape::new(1024, [4, 4], true), Shape { vector: 4, lanes: 32, rows: 8 });
        assert_eq!(Shape::new(128, [2, 2], true), Shape { vector: 8, lanes: 16, rows: 16 });
        assert_eq!(Shape::new(1, [4, 4], true), Shape { vector: 1, lanes: 1, rows: 256 });
    }

    fn compile<T: Float, D: Float>(compiler: &TestCompiler) {
        let all = [[true, true], [true, false], [false, true]];
        for (columns, [slope, sums]) in [1, 13, 12, 1024].into_iter().zip(all.into_iter().cycle()) {
            let shape = Shape::new(columns, [size_of::<T>(), size_of::<D>()], true);
            compiler.build(&shape.source::<T, D>(columns, Results { slope, sums }));
        }
    }

    #[test]
    fn kernels_compile() {
        let Some(compiler) = TestCompiler::new() else { return };
        compile::<f32, f32>(&compiler);
        compile::<bf16, bf16>(&compiler);
        compile::<f32, bf16>(&compiler);
    }
}
