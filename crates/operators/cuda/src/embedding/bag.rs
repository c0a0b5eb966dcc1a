//! The forward pass of bags over many tables in one launch.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use steptime_ops::embedding::{Bounds, EmbeddingError, Pooling, Report};

use super::bag_plan::Launch;
use super::{Faults, Lookups, Sizes, Tables, report};
use crate::geometry::Geometry;
use crate::{Args, Device, Error, Float, Kernel, SliceMut, Stream};

/// Kernel argument for a table.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Entry {
    rows: u64,
    count: u64,
    pitch: u32,
    column: u32,
    kind: u32,
    unused: u32,
}

/// The forward pass of bags, compiled for its tables' shapes and types: `out[b, column(t)..]` is the pooled rows of
/// bag `b` of table `t`, in an output `[B, D_0 + D_1 + ...]`; or `[N, D]`, one row for each lookup, where nothing is
/// pooled.
///
/// The output has elements `D`. The result is bit-identical to `steptime_ops::embedding::forward`, rounded once to `D`.
#[derive(Debug)]
pub struct Forward<D = f32> {
    kernel: Kernel,
    launch: Launch,
    sizes: Sizes,
    bounds: Bounds,
    faults: Faults,
    of: PhantomData<fn() -> D>,
}

impl<D: Float> Forward<D> {
    /// Compiles the pass for tables like these and for these sizes.
    ///
    /// # Errors
    ///
    /// No compiler; poolings that cannot be combined; more than 1000 tables.
    pub fn new(
        device: &Device,
        tables: &Tables<'_>,
        sizes: Sizes,
        bounds: Bounds,
    ) -> Result<Forward<D>, Error> {
        let launch = Launch::new(tables, &sizes, bounds, device.multiprocessors())?;
        let kernel = device.load(&launch.source::<D>())?.kernel("bag_forward")?;
        kernel.prefer_cache()?;
        Ok(Forward { kernel, launch, sizes, bounds, faults: Faults::new(device)?, of: PhantomData })
    }

    /// Launches the pass: `out` has rows `stride` elements apart, as compiled for. Wrong lookups are reported by
    /// [`Forward::check`].
    ///
    /// # Errors
    ///
    /// Tables, lookups or an output of another shape or type than compiled for.
    pub fn run(
        &self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        out: &mut SliceMut<'_, D>,
    ) -> Result<(), Error> {
        let sizes = Sizes::from_lookups(lookups, self.sizes.stride);
        self.check_shape(tables, &sizes, lookups.offsets().len(), out)?;
        let address = out.address();
        self.launch(stream, tables, lookups, 0..sizes.bags, (out, address))
    }

    /// As [`Forward::run`], for some of the bags: the first of them is stored in the first row of `out`.
    ///
    /// # Errors
    ///
    /// As [`Forward::run`]; bags that do not exist, or without pooling.
    pub fn run_bags(
        &self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        bags: Range<usize>,
        out: &mut SliceMut<'_, D>,
    ) -> Result<(), Error> {
        let sizes = Sizes::from_lookups(lookups, self.sizes.stride);
        let apart = tables.pooling(0) == Pooling::None;
        if apart || bags.start > bags.end || bags.end > sizes.bags {
            let what = format!("a forward pass over bags {bags:?} of {}", sizes.bags);
            return Err(Error::Unsupported { what, remedy: "choose pooled bags of the batch" });
        }
        if bags.is_empty() {
            return Ok(());
        }
        self.check_rows(tables, &sizes, lookups.offsets().len(), out, bags.len())?;
        let before = (bags.start * self.sizes.stride * size_of::<D>()) as u64;
        let address = out.address().wrapping_sub(before);
        self.launch(stream, tables, lookups, bags, (out, address))
    }

    /// Launches the pass for some bags; row 0 of the output is at `address`, and the rows of the bags are in `out`.
    fn launch(
        &self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        bags: Range<usize>,
        (out, address): (&mut SliceMut<'_, D>, u64),
    ) -> Result<(), Error> {
        let sizes = Sizes::from_lookups(lookups, self.sizes.stride);
        let entries: Vec<Entry> = tables
            .iter()
            .enumerate()
            .map(|(at, table)| Entry {
                rows: table.bytes().address(),
                count: table.rows() as u64,
                pitch: table.pitch() as u32,
                column: if tables.pooling(at) == Pooling::None { 0 } else { tables.column(at) as u32 },
                kind: self.launch.kind_of[at],
                unused: 0,
            })
            .collect();
        let args = Args::new()
            .array(&entries)
            .value(lookups.indices().address())
            .value(lookups.offsets().address())
            .value(lookups.weights().map_or(0, |weights| weights.address()))
            .value(address)
            .writes(out.as_ref())
            .value(self.sizes.stride as u64)
            .value(sizes.bags as i32)
            .value(bags.start as i32)
            .value(bags.end as i32)
            .value(sizes.lookups as i64)
            .slice(self.faults.found());
        let args = tables.iter().fold(lookups.read_by(args), |args, table| args.reads(table.bytes()));
        let mut grid = self.launch.grid;
        if bags.len() < sizes.bags {
            let part = u64::from(grid.blocks[0]) * bags.len() as u64;
            grid.blocks[0] = part.div_ceil(sizes.bags as u64) as u32;
        }
        // SAFETY: the arguments are those of `bag_forward`; sizes were checked; the kernel reads indices only between
        // offsets that rise within their number, and rows only where there are some. All memory is named.
        unsafe { self.kernel.launch(stream, grid, args) }
    }

    /// Checks that the operands are as compiled for; the number of lookups may differ.
    fn check_shape(
        &self,
        tables: &Tables<'_>,
        sizes: &Sizes,
        offsets: usize,
        out: &SliceMut<'_, D>,
    ) -> Result<(), Error> {
        let apart = tables.pooling(0) == Pooling::None;
        let rows = if apart { sizes.lookups } else { sizes.bags };
        self.check_rows(tables, sizes, offsets, out, rows)
    }

    /// The same for an output of some rows.
    fn check_rows(
        &self,
        tables: &Tables<'_>,
        sizes: &Sizes,
        offsets: usize,
        out: &SliceMut<'_, D>,
        rows: usize,
    ) -> Result<(), Error> {
        let compiled = Sizes { lookups: sizes.lookups, ..self.sizes };
        let kinds = &self.launch.kinds;
        let like = |at: usize| {
            let (table, kind) = (tables.table(at), &kinds[self.launch.kind_of[at] as usize]);
            table.dim() == kind.dim
                && table.element() == kind.element
                && tables.pooling(at) == kind.pooling
                && table.align().is_multiple_of(kind.lanes.align())
        };
        if *sizes != compiled || tables.len() != self.launch.kind_of.len() || !(0..tables.len()).all(like) {
            return Err(Error::Unsupported {
                what: format!(
                    "a forward pass for {compiled:?} with {sizes:?}, or with tables of other shapes"
                ),
                remedy: "make another `Forward` for these",
            });
        }
        if sizes.lookups > i32::MAX as usize {
            return Err(Error::Unsupported {
                what: format!("a forward pass over {} lookups", sizes.lookups),
                remedy: "cut the batch into parts of fewer than 2^31 lookups",
            });
        }
        let needed = steptime_ops::embedding::Lookups::offset_count(tables.len(), sizes.bags)?;
        if offsets != needed {
            let (found, tables, bags) = (offsets, tables.len(), sizes.bags);
            return Err(EmbeddingError::OffsetCount { found, tables, bags, needed }.into());
        }
        let apart = tables.pooling(0) == Pooling::None;
        let columns = if apart { tables.table(0).dim() } else { tables.columns() };
        let needed = super::span(rows, columns, sizes.stride);
        if out.len() < needed || sizes.stride < columns {
            let (found, stride) = (out.len(), sizes.stride);
            return Err(EmbeddingError::Size { what: "output", found, stride, rows, columns, needed }.into());
        }
        let align = size_of::<D>() * self.launch.store;
        if !out.address().is_multiple_of(align as u64) {
            return Err(Error::Unsupported {
                what: format!("an output at an address that is not a multiple of {align}"),
                remedy: "begin the output at a multiple of 16 bytes",
            });
        }
        Ok(())
    }

    /// Waits for the launches in the stream, and reports errors in their lookups since the last check; these must be
    /// the lookups of the last launch.
    ///
    /// # Errors
    ///
    /// Offsets that fall; with [`Bounds::Error`], the first index that is out of range; a kernel that failed.
    pub fn check(
        &mut self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
    ) -> Result<Report, Error> {
        let found = self.faults.take(stream)?;
        report::explain(found, stream, tables, lookups, self.bounds)
    }

    /// Launch geometry of the kernel.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        let mut geometry = self.launch.geometry();
        geometry.registers = Some(self.kernel.registers()?);
        Ok(geometry)
    }
}
