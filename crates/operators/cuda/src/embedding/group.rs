//! Lookups grouped by row, for backward passes: see `group_table.cu`, `group_buckets.cu` and `group_passes.cu`.

use bytemuck::{Pod, Zeroable};
use steptime_launch::SortWay;
use steptime_ops::embedding::{Bounds, Report};

use super::group_kernels::{Kernels, source};
use super::group_plan::{GroupPlan, SORTERS};
use super::{Lookups, Payload, Sizes, Tables, report};
use crate::geometry::Geometry;
use crate::runtime::StreamUse;
use crate::{Args, Buffer, Error, Grid, Kernel, Slice, Stream};

/// The lookups that kernels read.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct DeviceLookups {
    indices: u64,
    offsets: u64,
    rows: u64,
    total: u64,
    bags: u32,
    tables: u32,
}

/// The lookups of each table, sorted by row and then by position: a stable sort of all tables at once, bit-identical in
/// each run. Lookups of rows that do not exist come last and get no gradient.
///
/// Tables of more than 8192 lookups are cut into buckets, at boundaries that would have cut the batch before evenly.
/// The first batch, and a batch whose row frequencies differ much from the one before, takes longer: at most 2.5 ms
/// were measured (16 tables of 262,144 lookups, of which one row has a sixth).
///
/// Made once for tables and sizes. [`Grouping::run`] allocates nothing and does not wait, so it can be captured.
#[derive(Debug)]
pub struct Grouping {
    plan: GroupPlan,
    sizes: Sizes,
    payload: Payload,
    rows: Vec<u32>,
    kernels: Kernels,
    means: Kernel,
    device_rows: Buffer<u32>,
    pairs: [Buffer<u64>; 2],
    histograms: Buffer<u32>,
    totals: Buffer<u32>,
    /// Boundaries of buckets: those of the next batch, and those in use.
    splitters: [Buffer<u32>; 2],
    /// Boundaries of buckets in each tile.
    starts: Buffer<u16>,
    plans: Buffer<u64>,
    windows: Buffer<u32>,
    report: Buffer<u32>,
    bag_of: Buffer<u32>,
    grouped: usize,
    /// Use of all buffers above together.
    stream_use: StreamUse,
}

impl Grouping {
    /// A grouping for at most `sizes.lookups` lookups of these tables, of which no table has more than `longest`; a
    /// small limit takes fewer launches. `sizes.stride` is ignored.
    ///
    /// # Errors
    ///
    /// No compiler, not enough memory, or more lookups than 32 bits count.
    pub fn new(
        stream: &Stream,
        tables: &Tables<'_>,
        sizes: Sizes,
        longest: usize,
        payload: Payload,
    ) -> Result<Grouping, Error> {
        let device = stream.device();
        let rows: Vec<u32> = tables.iter().map(|table| table.rows() as u32).collect();
        let plan = GroupPlan::new(&rows, sizes.bags, sizes.lookups, longest)?;
        let module = device.load(&source(&plan, &sizes, payload))?;
        let kernels = Kernels::load(&module, &plan)?;
        let many = plan.sort.way == SortWay::Passes;
        let more = plan.sort.goes_back_and_forth();
        let splitters = first_splitters(&plan, &rows, payload);
        let bags = if payload == Payload::PositionAndBag { sizes.lookups } else { 0 };
        Ok(Grouping {
            kernels,
            means: module.kernel("bag_means")?,
            device_rows: Buffer::from_host(stream, &rows)?,
            pairs: [
                Buffer::zeros(stream, plan.places())?,
                Buffer::zeros(stream, if more { plan.places() } else { 0 })?,
            ],
            histograms: Buffer::zeros(stream, if many { plan.tiles() * plan.radix() } else { 0 })?,
            totals: Buffer::zeros(stream, if many { rows.len() * plan.radix() } else { 0 })?,
            splitters: [Buffer::from_host(stream, &splitters)?, Buffer::zeros(stream, splitters.len())?],
            starts: Buffer::zeros(
                stream,
                if splitters.is_empty() { 0 } else { plan.tiles() * (plan.buckets() + 1) },
            )?,
            plans: Buffer::zeros(stream, rows.len() * 3)?,
            windows: Buffer::zeros(stream, plan.windows())?,
            report: Buffer::zeros(stream, 4)?,
            bag_of: Buffer::zeros(stream, bags)?,
            grouped: 0,
            stream_use: StreamUse::written(stream),
            plan,
            sizes,
            payload,
            rows,
        })
    }

    /// Groups these lookups. Errors in them are reported by [`Grouping::check`]; until then no backward pass over them
    /// changes a table. In another stream than the last time it waits for that one first.
    ///
    /// # Errors
    ///
    /// Other bags or types than the grouping was made for, or more lookups; a kernel that failed.
    pub fn run(&mut self, stream: &Stream, lookups: &Lookups<'_>) -> Result<(), Error> {
        self.check_sizes(lookups)?;
        self.stream_use.write(stream)?;
        self.report.as_mut().fill_bytes(stream, 0)?;
        let (plan, given) = (&self.plan, self.given(lookups));
        let pairs = |at: usize| self.pairs[at].as_ref().address();
        let (windows, report) = (plan.windows() as u32, self.report.as_ref().address());
        let (histograms, totals) = (self.histograms.as_ref().address(), self.totals.as_ref().address());
        let plans = self.plans.as_ref().address();
        let bag_of = self.bag_of.as_ref().address();
        let tables = self.rows.len() as u32;
        let window = self.windows.as_ref().address();
        let first = |args: Args<'static>| args.value(plans).value(window).value(windows).value(report);
        let go = |kernel: &Kernel, grid: Grid, args: Args<'_>| {
            // SAFETY: the arguments are those of the kernel. Buffers were made for these sizes, which were checked, and
            // the kernels stay within them whatever indices and offsets hold. The lookups are named; no other stream
            // uses the buffers kept here since `stream_use.write`.
            unsafe { kernel.launch(stream, grid, lookups.read_by(args)) }
        };
        let tiles = Grid::line((lookups.len() / plan.tile() + self.rows.len()) as u32, plan.sort.threads);
        match &self.kernels {
            Kernels::Table { sort } => {
                let args = first(Args::new().value(given).value(pairs(0)).value(bag_of));
                go(sort, Grid::line(tables, plan.sort.threads).shared(plan.shared()), args)?;
            }
            Kernels::Buckets { partition, sort } => {
                let [next, used] = self.splitters.each_ref().map(|of| of.as_ref().address());
                let starts = self.starts.as_ref().address();
                let args = Args::new().value(given).value(next).value(used).value(pairs(0)).value(starts);
                go(partition, tiles.shared(plan.shared()), first(args.value(bag_of)))?;
                let buckets = Grid::plane(plan.buckets() as u32, tables, SORTERS);
                let args = Args::new()
                    .value(plans)
                    .value(given.rows)
                    .value(used)
                    .value(next)
                    .value(pairs(0))
                    .value(starts);
                go(sort, buckets.shared(GroupPlan::shared_of_bucket()), args.value(pairs(1)).value(report))?;
            }
            Kernels::Passes { count_indices, scan, scatter_indices, count_pairs, scatter_pairs } => {
                let columns = Grid::plane(plan.radix() as u32 / 32, tables, 1024);
                let scan_args = || Args::new().value(plans).value(histograms).value(totals);
                go(count_indices, tiles, first(Args::new().value(given).value(histograms)))?;
                go(scan, columns, scan_args())?;
                let args = Args::new().value(given).value(histograms).value(totals);
                go(scatter_indices, tiles.shared(plan.shared()), args.value(pairs(0)).value(bag_of))?;
                for pass in 1..plan.sort.passes as usize {
                    let (from, to, shift) =
                        (pairs((pass + 1) % 2), pairs(pass % 2), pass as u32 * plan.sort.bits);
                    let args = Args::new().value(given).value(from).value(shift).value(histograms);
                    go(count_pairs, tiles, args)?;
                    go(scan, columns, scan_args())?;
                    let args =
                        Args::new().value(given).value(from).value(shift).value(histograms).value(totals);
                    go(scatter_pairs, tiles.shared(plan.shared()), args.value(to))?;
                }
            }
        }
        self.grouped = lookups.len();
        Ok(())
    }

    /// Fills `1 / L` of each bag, `[T, B]`; with [`Bounds::Ignore`], lookups of rows that do not exist do not count.
    pub(super) fn bag_means(
        &self,
        stream: &Stream,
        lookups: &Lookups<'_>,
        bounds: Bounds,
        means: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let ignore = u32::from(bounds == Bounds::Ignore);
        let mut means = means.as_mut();
        let args = Args::new().value(self.given(lookups)).value(ignore).slice_mut(&mut means);
        let blocks = (self.rows.len() * self.sizes.bags).div_ceil(128);
        // SAFETY: the arguments are those of `bag_means`; there is room for a mean of each bag of each table. The
        // lookups and the means are named; the parts of the grouping that are read are not written since `ready`.
        unsafe { self.means.launch(stream, Grid::line(blocks as u32, 128), lookups.read_by(args)) }
    }

    fn given(&self, lookups: &Lookups<'_>) -> DeviceLookups {
        DeviceLookups {
            indices: lookups.indices().address(),
            offsets: lookups.offsets().address(),
            rows: self.device_rows.as_ref().address(),
            total: lookups.len() as u64,
            bags: self.sizes.bags as u32,
            tables: self.rows.len() as u32,
        }
    }

    fn check_sizes(&self, lookups: &Lookups<'_>) -> Result<(), Error> {
        let given = Sizes { stride: self.sizes.stride, ..Sizes::from_lookups(lookups, 0) };
        let made = Sizes { lookups: given.lookups, weighted: given.weighted, ..self.sizes };
        if given != made || lookups.len() > self.sizes.lookups || lookups.offsets().len() != self.offsets()? {
            return Err(Error::Unsupported {
                what: format!(
                    "a grouping for {:?} of {} tables with {given:?} and {} offsets",
                    self.sizes,
                    self.rows.len(),
                    lookups.offsets().len()
                ),
                remedy: "make another `Grouping` for these",
            });
        }
        Ok(())
    }

    fn offsets(&self) -> Result<usize, Error> {
        Ok(steptime_ops::embedding::Lookups::offset_count(self.rows.len(), self.sizes.bags)?)
    }

    /// Waits for the stream, and reports errors in the lookups grouped last, which must be these.
    ///
    /// # Errors
    ///
    /// Offsets that decrease; more lookups of a table than the grouping was made for; with [`Bounds::Error`], the first
    /// index that is out of range; a kernel that failed.
    pub fn check(
        &self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        bounds: Bounds,
    ) -> Result<Report, Error> {
        let mut found = [0; 4];
        self.report.as_ref().read(stream, &mut found)?;
        let [bad, lookup, offset, long] = found;
        if let Some(most) = self.plan.most_of_table().filter(|_| long != 0 && offset == 0) {
            return Err(Error::Unsupported {
                what: format!("table {} has more than {most} lookups", !long),
                remedy: "make the `Grouping` for a larger `longest`",
            });
        }
        let place = |complement: u32| if complement == 0 { u64::MAX } else { u64::from(!complement) };
        report::explain([bad.into(), place(lookup), place(offset)], stream, tables, lookups, bounds)
    }

    /// Waits where another stream may still be grouping: kernels do not check the grouped lookups.
    pub(super) fn ready(&self, stream: &Stream) -> Result<(), Error> {
        self.stream_use.read(stream)
    }

    /// Addresses of the sorted pairs of row (upper half) and payload, of the table of each window of 256 places, of
    /// each table's begin, and of the report.
    pub(super) fn sorted(&self) -> [u64; 4] {
        let place = match self.plan.sort.way {
            SortWay::Table => 0,
            SortWay::Buckets(_) => 1,
            SortWay::Passes => (self.plan.sort.passes as usize + 1) % 2,
        };
        let pairs = self.pairs[place].as_ref().address();
        let of = Slice::<u32>::address;
        [pairs, of(self.windows.as_ref()), self.plans.as_ref().address(), of(self.report.as_ref())]
    }

    /// The bag of each lookup, `[N]`, if it is kept.
    pub(super) fn bag_of(&self) -> u64 {
        self.bag_of.as_ref().address()
    }

    /// Number of windows of the sorted order.
    pub(super) fn windows(&self) -> usize {
        self.plan.windows()
    }

    /// Number of rows of each table, E.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The sizes that it was made for.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The part of a lookup that it keeps.
    #[must_use]
    pub fn payload(&self) -> Payload {
        self.payload
    }

    /// Number of lookups that were grouped last.
    #[must_use]
    pub fn len(&self) -> usize {
        self.grouped
    }

    /// Whether no lookups were grouped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grouped == 0
    }

    /// Launch geometry of its kernels, with registers.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Vec<Geometry>, Error> {
        let mut all = self.plan.geometry();
        for (geometry, kernel) in all.iter_mut().zip(self.kernels.all()) {
            geometry.registers = Some(kernel.registers()?);
        }
        Ok(all)
    }
}

/// Boundaries of buckets for the first batch, `[T, buckets]`, in tables of `rows` rows: evenly spaced.
fn first_splitters(plan: &GroupPlan, rows: &[u32], payload: Payload) -> Vec<u32> {
    let (buckets, kept) = (plan.buckets() as u64, plan.values(payload).kept);
    let of_table =
        |&rows: &u32| (0..buckets).map(move |bucket| ((bucket * u64::from(rows) / buckets) << kept) as u32);
    rows.iter().flat_map(of_table).collect()
}

impl Drop for Grouping {
    fn drop(&mut self) {
        // The buffers keep the stream that they were made in. After a failed kernel there is nothing to wait for.
        let _ = self.stream_use.wait(self.windows.device());
    }
}
