//! Rows that stay apart: one row of the output for each lookup.

use steptime_cost::device::DeviceSpec;
use steptime_cost::device::tiling::{Launch as Launched, Problem};
use steptime_ops::embedding::{BadLookup, Bounds, Element, EmbeddingError, Report};

use super::lanes::device_name;
use super::{Faults, Ints, Lanes, ROWS, Table};
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Grid, Kernel, Slice, SliceMut, Source, Stream};

/// Threads of a block.
const THREADS: u32 = 128;

/// In which order a gather reads its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatherOrder {
    /// Row after row, each whole.
    Rows,
    /// All lookups for the first columns, then all for the next: so many bytes of a row at a time, rounded to what a
    /// warp holds.
    Columns {
        /// Bytes of a row in a slice.
        slice: usize,
    },
    /// By row: lookups come sorted, as pairs of row and place.
    Grouped,
}

impl GatherOrder {
    /// The order that is expected to take the least time on this GPU, and why.
    #[must_use]
    pub fn choose(problem: &Problem, spec: &DeviceSpec) -> (GatherOrder, String) {
        let choice = problem.choose(spec);
        let order = match choice.launch {
            Launched::Rows | Launched::ColumnsFirst { .. } => GatherOrder::Rows,
            Launched::LookupsFirst { slice } => GatherOrder::Columns { slice: slice as usize },
            Launched::Sorted => GatherOrder::Grouped,
        };
        (order, choice.reason)
    }
}

/// Where the rows to gather are named.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// Row `n` of the output is row `indices[n]`.
    Indices(Ints<'a>),
    /// Pairs sorted by row: the row in the upper half, its place in the output in the lower.
    Sorted(Slice<'a, u64>),
}

impl<'a> From<Ints<'a>> for Wanted<'a> {
    fn from(indices: Ints<'a>) -> Wanted<'a> {
        Wanted::Indices(indices)
    }
}

impl<'a> From<Slice<'a, u64>> for Wanted<'a> {
    fn from(pairs: Slice<'a, u64>) -> Wanted<'a> {
        Wanted::Sorted(pairs)
    }
}

impl Wanted<'_> {
    fn len(self) -> usize {
        match self {
            Wanted::Indices(indices) => indices.len(),
            Wanted::Sorted(pairs) => pairs.len(),
        }
    }

    fn address(self) -> u64 {
        match self {
            Wanted::Indices(indices) => indices.address(),
            Wanted::Sorted(pairs) => pairs.address(),
        }
    }

    /// Bytes of an index; 0 for pairs.
    fn width(self) -> usize {
        match self {
            Wanted::Indices(indices) => indices.width(),
            Wanted::Sorted(_) => 0,
        }
    }
}

/// Source and cut of a gather.
#[derive(Debug)]
struct Launch {
    source: Source,
    lanes: Lanes,
    unroll: usize,
    columns_first: bool,
    store: usize,
}

impl Launch {
    fn new(table: &Table<'_>, order: GatherOrder, width: usize, stride: usize) -> Launch {
        let mut lanes = Lanes::new(table.dim(), table.element(), table.align());
        let slice = match order {
            GatherOrder::Columns { slice } => slice,
            GatherOrder::Rows | GatherOrder::Grouped => 1024,
        };
        if lanes.ranges > 1 {
            // Slices of 32 lanes, of one, two or four vectors each.
            lanes.passes = (slice / (32 * lanes.bytes)).clamp(1, 4).next_power_of_two().min(4);
            lanes.ranges = lanes.vectors.div_ceil(32 * lanes.passes);
        }
        let unroll = (64 / (lanes.bytes * lanes.passes)).clamp(1, 4);
        let columns_first = !matches!(order, GatherOrder::Columns { .. });
        let store = 1 << stride.trailing_zeros().min(2);
        let grouped = order == GatherOrder::Grouped;
        let index = if grouped { "u64" } else { Ints::device_name(width) };
        let source = Source::new("gather.cu", format!("{ROWS}{}", include_str!("gather.cu")))
            .option("--fmad=false")
            .define("D", table.dim())
            .define("ELEMENT", device_name(table.element()))
            .define("BYTES", lanes.bytes)
            .define("LANES", lanes.lanes)
            .define("PASSES", lanes.passes)
            .define("UNROLL", unroll)
            .define("SLICES", lanes.ranges)
            .define("COLUMNS_FIRST", u8::from(columns_first))
            .define("THREADS", THREADS)
            .define("INDEX", index)
            .define("GROUPED", u8::from(grouped))
            .define("STORE", store)
            .define("CACHE_ROWS", 1);
        Launch { source, lanes, unroll, columns_first, store }
    }

    fn grid(&self, lookups: usize) -> Result<Grid, Error> {
        let of_block = THREADS as usize / 32 * self.lanes.groups() * self.unroll;
        let slices = self.lanes.ranges;
        let (along, across) = if self.columns_first { (slices, 1) } else { (1, slices) };
        let blocks =
            lookups.div_ceil(of_block).checked_mul(along).filter(|&blocks| blocks <= i32::MAX as usize);
        match blocks {
            Some(blocks) if across <= 65535 => Ok(Grid::plane(blocks as u32, across as u32, THREADS)),
            _ => Err(Error::Unsupported {
                what: format!("a gather of {lookups} rows in {slices} slices"),
                remedy: "cut the lookups into parts",
            }),
        }
    }
}

/// A gather, compiled for its table's shape and type: row `n` of the output is the row that lookup `n` names.
#[derive(Debug)]
pub struct Gather {
    kernel: Kernel,
    launch: Launch,
    order: GatherOrder,
    shape: (usize, Element),
    width: usize,
    stride: usize,
    bounds: Bounds,
    faults: Faults,
}

impl Gather {
    /// Compiles it for tables like this one, indices of so many bytes (4 or 8; of no account for sorted pairs), and an
    /// output with rows `stride` elements apart.
    ///
    /// # Errors
    ///
    /// No compiler.
    pub fn new(
        device: &Device,
        table: &Table<'_>,
        order: GatherOrder,
        width: usize,
        stride: usize,
        bounds: Bounds,
    ) -> Result<Gather, Error> {
        let width = if order == GatherOrder::Grouped { 0 } else { width };
        let launch = Launch::new(table, order, width, stride);
        let kernel = device.load(&launch.source)?.kernel("gather")?;
        kernel.prefer_cache()?;
        let faults = Faults::new(device)?;
        let shape = (table.dim(), table.element());
        Ok(Gather { kernel, launch, order, shape, width, stride, bounds, faults })
    }

    /// Launches it. A lookup out of range gives a row of zeros; [`Gather::check`] says whether there were any. Sorted
    /// pairs name each place below their number once; what lies beyond is left out.
    ///
    /// # Errors
    ///
    /// A table, lookups or an output of another shape or type than compiled for.
    pub fn run<'a>(
        &self,
        stream: &Stream,
        table: &Table<'_>,
        wanted: impl Into<Wanted<'a>>,
        out: &mut SliceMut<'_, f32>,
    ) -> Result<(), Error> {
        let wanted = wanted.into();
        let like = self.shape == (table.dim(), table.element())
            && table.align().is_multiple_of(self.launch.lanes.bytes)
            && wanted.width() == self.width
            && out.address().is_multiple_of(4 * self.launch.store as u64);
        if !like {
            return Err(Error::Unsupported {
                what: "a gather for a table, indices or an output of another shape, type or alignment".into(),
                remedy: "make another `Gather` for these, and begin outputs at multiples of 16 bytes",
            });
        }
        let (rows, columns, stride) = (wanted.len(), table.dim(), self.stride);
        let needed = rows.checked_sub(1).map_or(0, |rows| rows * stride + columns);
        if out.len() < needed || stride < columns {
            let found = out.len();
            return Err(EmbeddingError::Size { what: "output", found, stride, rows, columns, needed }.into());
        }
        let args = Args::new()
            .value(table.bytes().address())
            .value(table.rows() as u64)
            .value(table.pitch() as u32)
            .value(wanted.address())
            .value(rows as i64)
            .slice_mut(out)
            .value(stride as i64)
            .value(self.faults.address());
        // SAFETY: the arguments are those of `gather`; sizes were checked; rows are read only where there are some.
        unsafe { self.kernel.launch(stream, self.launch.grid(rows)?, args) }
    }

    /// Waits for the launches in the stream, and says what was wrong with their lookups since the last check; these
    /// must be the lookups of the last launch.
    ///
    /// # Errors
    ///
    /// With [`Bounds::Error`], the first index that is out of range; a kernel that failed.
    pub fn check<'a>(
        &mut self,
        stream: &Stream,
        table: &Table<'_>,
        wanted: impl Into<Wanted<'a>>,
    ) -> Result<Report, Error> {
        let [bad, first, _] = self.faults.take(stream)?;
        if bad == 0 {
            return Ok(Report::default());
        }
        let lookup = first as usize;
        let index = match wanted.into() {
            Wanted::Indices(indices) => indices.read(stream, lookup..lookup + 1)?[0],
            // Pairs of rows that are not there carry the number after the last.
            Wanted::Sorted(_) => table.rows() as i64,
        };
        if self.bounds == Bounds::Error {
            let (name, rows) = (table.name().to_owned(), table.rows());
            return Err(EmbeddingError::Index { table: 0, name, bag: lookup, lookup, index, rows }.into());
        }
        let first = Some(BadLookup { table: 0, bag: lookup, lookup, index });
        Ok(Report { out_of_range: bad as usize, first })
    }

    /// The order it reads the table in.
    #[must_use]
    pub fn order(&self) -> GatherOrder {
        self.order
    }

    /// How it is launched for so many lookups.
    ///
    /// # Errors
    ///
    /// Too many lookups; the driver refuses to say how many registers it takes.
    pub fn geometry(&self, lookups: usize) -> Result<Geometry, Error> {
        let Lanes { bytes, lanes, passes, ranges, .. } = self.launch.lanes;
        let (unroll, groups) = (self.launch.unroll, self.launch.lanes.groups());
        let lanes = format!(
            "{lanes} lanes x {passes} x {bytes} B a slice, {ranges} slices a row, {groups} side by side, {unroll} \
             rows in flight each"
        );
        let axes = if self.launch.columns_first {
            "x slices of columns, fastest, then lookups"
        } else {
            "x lookups, y slices of columns"
        };
        Ok(Geometry {
            kernel: "gather",
            grid: self.launch.grid(lookups)?,
            axes,
            registers: Some(self.kernel.registers()?),
            lanes,
            busy: self.launch.lanes.busy(),
            bounds: "indices by the kernel, in the first slice; what is wrong goes to a report",
            divergence: "none but in the last warp, and at the last columns of rows that do not fill a slice",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Build, Capability, CubinCache, nvrtc_version};

    fn table(dim: usize, element: Element, pitch: usize) -> Table<'static> {
        // SAFETY: nothing is launched.
        let bytes = unsafe { Slice::from_raw(1 << 20, 100 * pitch) };
        Table::borrow("t", bytes, [100, dim], element, pitch).unwrap()
    }

    #[test]
    fn the_order_is_that_of_the_grids_axes() {
        let wide = table(4096, Element::F32, 16384);
        let columns = Launch::new(&wide, GatherOrder::Columns { slice: 1024 }, 8, 4096);
        assert_eq!((columns.lanes.ranges, columns.lanes.passes, columns.unroll), (16, 2, 2));
        assert_eq!(columns.grid(16384).unwrap().blocks, [2048, 16, 1]);
        let rows = Launch::new(&wide, GatherOrder::Rows, 8, 4096);
        assert_eq!(rows.grid(16384).unwrap().blocks, [2048 * 16, 1, 1]);
        let narrow = Launch::new(&table(8, Element::F32, 32), GatherOrder::Rows, 8, 8);
        assert_eq!((narrow.lanes.lanes, narrow.lanes.ranges, narrow.unroll), (2, 1, 4));
        assert!(columns.grid(1 << 42).is_err());
    }

    #[test]
    fn all_orders_of_all_elements_compile() {
        let Ok((major, _)) = nvrtc_version() else {
            return eprintln!("skipped: no libnvrtc");
        };
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::at(folder.path());
        let orders = [GatherOrder::Rows, GatherOrder::Columns { slice: 512 }, GatherOrder::Grouped];
        for element in Element::ALL {
            for dim in [1, 33, 64, 515] {
                for order in orders {
                    let pitch = element.row_bytes(dim).next_multiple_of(element.align());
                    let launch = Launch::new(&table(dim, element, pitch), order, 4, dim);
                    let capability = Capability { major: 9, minor: 0 };
                    let built = Build::new(&launch.source, capability, major * 1000, &cache).unwrap();
                    assert!(built.cubin.len() > 1000);
                }
            }
        }
    }
}
