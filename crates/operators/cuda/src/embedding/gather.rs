//! Rows without pooling: one row of the output for each lookup.

use steptime_launch::Lanes;
use steptime_ops::embedding::{BadLookup, Bounds, Element, EmbeddingError, Report};

use super::gather_plan::Launch;
use super::{Faults, GatherOrder, Ints, Table};
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Kernel, Slice, SliceMut, Stream};

/// Row numbers of a gather.
#[derive(Debug, Clone, Copy)]
pub enum GatherRows<'a> {
    /// Row `n` of the output is row `indices[n]`.
    Indices(Ints<'a>),
    /// Pairs sorted by row: the row in the upper half, its place in the output in the lower half.
    Sorted(Slice<'a, u64>),
}

impl<'a> From<Ints<'a>> for GatherRows<'a> {
    fn from(indices: Ints<'a>) -> GatherRows<'a> {
        GatherRows::Indices(indices)
    }
}

impl<'a> From<Slice<'a, u64>> for GatherRows<'a> {
    fn from(pairs: Slice<'a, u64>) -> GatherRows<'a> {
        GatherRows::Sorted(pairs)
    }
}

impl<'a> GatherRows<'a> {
    fn len(self) -> usize {
        match self {
            GatherRows::Indices(indices) => indices.len(),
            GatherRows::Sorted(pairs) => pairs.len(),
        }
    }

    fn address(self) -> u64 {
        match self {
            GatherRows::Indices(indices) => indices.address(),
            GatherRows::Sorted(pairs) => pairs.address(),
        }
    }

    /// Adds them to the arguments as memory that a kernel reads.
    fn read_by<'k>(self, args: Args<'k>) -> Args<'k>
    where
        'a: 'k,
    {
        match self {
            GatherRows::Indices(indices) => indices.read_by(args),
            GatherRows::Sorted(pairs) => args.reads(pairs),
        }
    }

    /// Bytes of an index; 0 for pairs.
    fn width(self) -> usize {
        match self {
            GatherRows::Indices(indices) => indices.width(),
            GatherRows::Sorted(_) => 0,
        }
    }
}

/// A gather, compiled for its table's shape and type: row `n` of the output is the row of lookup `n`.
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
    /// Compiles the gather for tables like this one, indices of `width` bytes (4 or 8; ignored for sorted pairs), and
    /// an output with rows `stride` elements apart.
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

    /// Launches the gather. A lookup out of range gives a row of zeros; [`Gather::check`] reports such lookups. Sorted
    /// pairs contain each place below their number once; places beyond it are ignored.
    ///
    /// # Errors
    ///
    /// A table, lookups or an output of another shape or type than compiled for.
    pub fn run<'a>(
        &self,
        stream: &Stream,
        table: &Table<'_>,
        wanted: impl Into<GatherRows<'a>>,
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
        let needed = super::span(rows, columns, stride);
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
            .slice(self.faults.found())
            .reads(table.bytes());
        let args = wanted.read_by(args);
        // SAFETY: the arguments are those of `gather`; sizes were checked; rows are read only where there are some. All
        // memory is named.
        unsafe { self.kernel.launch(stream, self.launch.grid(rows)?, args) }
    }

    /// Waits for the launches in the stream, and reports errors in their lookups since the last check; these must be
    /// the lookups of the last launch.
    ///
    /// # Errors
    ///
    /// With [`Bounds::Error`], the first index that is out of range; a kernel that failed.
    pub fn check<'a>(
        &mut self,
        stream: &Stream,
        table: &Table<'_>,
        wanted: impl Into<GatherRows<'a>>,
    ) -> Result<Report, Error> {
        let [bad, first, _] = self.faults.take(stream)?;
        if bad == 0 {
            return Ok(Report::default());
        }
        let lookup = first as usize;
        let index = match wanted.into() {
            GatherRows::Indices(indices) => indices.read(stream, lookup..lookup + 1)?[0],
            // Pairs of rows that do not exist carry the number after the last.
            GatherRows::Sorted(_) => table.rows() as i64,
        };
        if self.bounds == Bounds::Error {
            let (name, rows) = (table.name().to_owned(), table.rows());
            return Err(EmbeddingError::Index { table: 0, name, bag: lookup, lookup, index, rows }.into());
        }
        let first = Some(BadLookup { table: 0, bag: lookup, lookup, index });
        Ok(Report { out_of_range: bad as usize, first })
    }

    /// The order in which the table is read.
    #[must_use]
    pub fn order(&self) -> GatherOrder {
        self.order
    }

    /// Launch geometry for this number of lookups.
    ///
    /// # Errors
    ///
    /// Too many lookups; the driver does not report the number of registers.
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
