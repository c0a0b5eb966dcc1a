//! Gradients of tables, fused with the optimizer: see `backward.cu`.
//!
//! Results are bit-identical to `steptime_ops::embedding::backward` for all rules that step column by column; the
//! row-wise rules add up squares in another order.

mod adding;
mod operands;
mod state;

use std::marker::PhantomData;

use steptime_ops::embedding::{Bounds, Pooling};

use self::state::{check_states, state_floats};
use super::row_check::check_tables;
use super::row_device::{Entry, Sources};
use super::row_kind::RowKind;
use super::row_numbers::Numbers;
use super::{Grouping, Lookups, Payload, RowSettings, Sizes, Tables};
use crate::geometry::Geometry;
use crate::runtime::StreamUse;
use crate::{Args, Buffer, Device, Error, Float, Grid, Kernel, Slice, Source, Stream};

/// The kernels of one kind of tables.
#[derive(Debug)]
struct Kernels {
    kind: RowKind,
    rows: Kernel,
    runs: Kernel,
    advance: Kernel,
    set: Kernel,
    place: Kernel,
    winners: Kernel,
}

impl Kernels {
    /// Loads the kernels of a source that was generated for this kind.
    fn load(device: &Device, source: &Source, kind: RowKind) -> Result<Kernels, Error> {
        let module = device.load(source)?;
        let kernel = |name| module.kernel(name);
        let (rows, runs) = (kernel("update_rows")?, kernel("update_runs")?);
        let (advance, set) = (kernel("advance")?, kernel("set_numbers")?);
        let (place, winners) = (kernel("place_table")?, kernel("find_winners")?);
        Ok(Kernels { kind, rows, runs, advance, set, place, winners })
    }
}

/// The distinct kinds of these tables, and the kind of each table.
fn kinds_of(tables: &Tables<'_>, sizes: &Sizes) -> (Vec<RowKind>, Vec<usize>) {
    let mut kinds: Vec<RowKind> = Vec::new();
    let mut kind_of = Vec::new();
    for at in 0..tables.len() {
        let kind = RowKind::new(tables, at, sizes);
        let place = kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len());
        if place == kinds.len() {
            kinds.push(kind);
        }
        kind_of.push(place);
    }
    (kinds, kind_of)
}

/// An optimizer of embedding tables on a GPU, with its state for every row, for gradients with elements `G`, which are
/// added in 32 bits.
///
/// Made once for tables and sizes. [`RowOptimizer::step`] allocates nothing and does not wait, so it can be captured;
/// the exception is the first step with tables at other addresses.
#[derive(Debug)]
pub struct RowOptimizer<G = f32> {
    settings: RowSettings,
    sizes: Sizes,
    payload: Payload,
    kernels: Vec<Kernels>,
    kind_of: Vec<usize>,
    shapes: Vec<(usize, usize)>,
    states: Vec<Buffer<f32>>,
    winners: Vec<Buffer<u32>>,
    numbers: Buffer<Numbers>,
    entries: Vec<Entry>,
    device_entries: Buffer<Entry>,
    means: Buffer<f32>,
    slots: Buffer<f32>,
    runs: Buffer<u32>,
    windows: usize,
    multiprocessors: u32,
    /// Whether each step may have tables at other addresses.
    moving: bool,
    /// Use of all buffers above together.
    stream_use: StreamUse,
    of: PhantomData<fn(G)>,
}

impl<G: Float> RowOptimizer<G> {
    /// An optimizer with zeros as the state of these tables, for groupings like this one and gradients whose rows are
    /// `sizes.stride` elements apart. `sizes.weighted` states whether lookups have weights.
    ///
    /// # Errors
    ///
    /// A setting outside of its range, a table that cannot be trained, no compiler, or not enough memory.
    pub fn new(
        stream: &Stream,
        tables: &Tables<'_>,
        grouping: &Grouping,
        sizes: Sizes,
        settings: RowSettings,
    ) -> Result<RowOptimizer<G>, Error> {
        let zeros = |floats: usize| Buffer::zeros(stream, floats);
        let states = state_floats(tables, &settings).map(zeros).collect::<Result<_, _>>()?;
        RowOptimizer::with_states(stream, tables, grouping, sizes, settings, states)
    }

    /// Does as [`RowOptimizer::new`], continuing with these states, in the layout that [`RowOptimizer::state`]
    /// describes. Steps count from 0.
    ///
    /// # Errors
    ///
    /// As those of [`RowOptimizer::new`]; a state of another size.
    pub fn with_states(
        stream: &Stream,
        tables: &Tables<'_>,
        grouping: &Grouping,
        sizes: Sizes,
        settings: RowSettings,
        states: Vec<Buffer<f32>>,
    ) -> Result<RowOptimizer<G>, Error> {
        settings.check()?;
        check_states(tables, &settings, &states)?;
        RowOptimizer::make(stream, tables, grouping, sizes, settings, states)
    }

    /// An optimizer with settings and states that were checked.
    fn make(
        stream: &Stream,
        tables: &Tables<'_>,
        grouping: &Grouping,
        sizes: Sizes,
        settings: RowSettings,
        states: Vec<Buffer<f32>>,
    ) -> Result<RowOptimizer<G>, Error> {
        check_tables(tables, &sizes)?;
        if sizes.weighted && grouping.payload() == Payload::Bag {
            return Err(Error::Unsupported {
                what: "a backward pass with per-sample weights over a grouping by bags".into(),
                remedy: "make the `Grouping` with the payload that `Payload::needed` says",
            });
        }
        let (device, payload) = (stream.device(), grouping.payload());
        let (kinds, kind_of) = kinds_of(tables, &sizes);
        let compile = |(number, kind): (usize, RowKind)| {
            let source = kind.source::<G>(number, settings.rule, settings.rounding, payload, &sizes);
            Kernels::load(device, &source, kind)
        };
        let kernels = kinds.into_iter().enumerate().map(compile).collect::<Result<Vec<_>, Error>>()?;
        let shapes: Vec<_> = tables.iter().map(|table| (table.rows(), table.dim())).collect();
        let winners = |at: usize| {
            let max = tables.pooling(at) == Pooling::Max;
            Buffer::zeros(stream, if max { sizes.bags * tables.table(at).dim() } else { 0 })
        };
        let mean = (0..tables.len()).any(|at| tables.pooling(at) == Pooling::Mean);
        let windows = grouping.windows();
        let widest = tables.iter().map(|table| table.dim()).max().unwrap_or(0);
        let least = kernels.iter().map(|kernels| kernels.kind.short()).min().unwrap_or(1);
        Ok(RowOptimizer {
            states,
            winners: (0..tables.len()).map(winners).collect::<Result<_, _>>()?,
            numbers: Buffer::from_host(stream, &[Numbers::new(&settings, 0)])?,
            entries: Vec::new(),
            device_entries: Buffer::zeros(stream, tables.len())?,
            means: Buffer::zeros(stream, if mean { tables.len() * sizes.bags } else { 0 })?,
            slots: Buffer::zeros(stream, windows * widest.next_multiple_of(4))?,
            runs: Buffer::zeros(stream, grouping.sizes().lookups / least + 4)?,
            multiprocessors: device.multiprocessors(),
            settings,
            sizes,
            payload,
            kernels,
            kind_of,
            shapes,
            windows,
            moving: false,
            stream_use: StreamUse::written(stream),
            of: PhantomData,
        })
    }

    /// The backward pass: steps every row that was looked up. `grouping` is that of `lookups`, and `gradient` that of
    /// the pooled output `[B, D_0 + D_1 + ...]`, or `[N, D]` where tables are not pooled. No table changes if the
    /// grouping found wrong lookups; with [`Bounds::Error`] that includes one out of range. In another stream than the
    /// last time, or than the grouping's, it waits for that one first.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit each other or the sizes this was made for, or a table that cannot be trained; a kernel
    /// that failed.
    pub fn step(
        &mut self,
        stream: &Stream,
        tables: &mut Tables<'_>,
        lookups: &Lookups<'_>,
        grouping: &Grouping,
        bounds: Bounds,
        gradient: Slice<'_, G>,
    ) -> Result<(), Error> {
        self.check(tables, lookups, grouping, gradient)?;
        grouping.ready(stream)?;
        self.stream_use.write(stream)?;
        self.take_turn(stream, tables, lookups, gradient)?;
        self.place(stream, tables)?;
        let [pairs, windows, plans, report] = grouping.sorted();
        if !self.means.is_empty() {
            grouping.bag_means(stream, lookups, bounds, &mut self.means)?;
        }
        self.find_winners(stream, lookups, bounds)?;
        let stop = u32::from(bounds == Bounds::Error);
        let numbers = self.numbers.as_ref().address();
        let common = |args: Args<'static>| args.value(numbers).value(report).value(stop);
        if let Some(first) = self.kernels.first().filter(|_| self.settings.counts()) {
            // SAFETY: the arguments are those of `advance`, which changes the one `Numbers` of this optimizer, and
            // which no other stream uses since `take_turn`.
            unsafe { first.advance.launch(stream, Grid::line(1, 1), common(Args::new()))? };
        }
        let widest = self.shapes.iter().map(|&(_, dim)| dim).max().unwrap_or(0);
        let sources = Sources {
            pairs,
            windows,
            plans,
            tables: self.device_entries.as_ref().address(),
            gradient: gradient.address(),
            stride: self.sizes.stride as u32,
            bags: self.sizes.bags as u32,
            weights: lookups.weights().map_or(0, Slice::address),
            bag_of: grouping.bag_of(),
            means: self.means.as_ref().address(),
            slots: self.slots.as_ref().address(),
            runs: self.runs.as_ref().address(),
            slot_pitch: widest.next_multiple_of(4) as u32,
            unused: 0,
        };
        for kernels in &self.kernels {
            let (dealt, rows, runs) = kernels.kind.grids(self.windows, self.multiprocessors);
            let args = || common(Args::new().value(sources));
            // SAFETY: the arguments are those of the kernels; tables, gradient and lookups were checked, buffers made
            // for their sizes, and a row belongs to one group of lanes. No other stream writes the grouping since
            // `ready`, uses this optimizer's buffers since `stream_use.write`, or the rest since `take_turn`.
            unsafe {
                kernels.rows.launch(stream, rows, args().value(dealt))?;
                if !kernels.kind.together {
                    kernels.runs.launch(stream, runs, args())?;
                }
            }
        }
        Ok(())
    }

    fn find_winners(&self, stream: &Stream, lookups: &Lookups<'_>, bounds: Bounds) -> Result<(), Error> {
        for (entry, winners) in
            self.entries.iter().zip(&self.winners).filter(|(_, winners)| !winners.is_empty())
        {
            let kernel = &self.kernels[entry.kind as usize].winners;
            let args = Args::new()
                .value(lookups.indices().address())
                .value(lookups.offsets().address())
                .value(lookups.len() as u64)
                .value(*entry)
                .value(self.sizes.bags as u32)
                .value(u32::from(bounds == Bounds::Ignore))
                .own(winners.as_ref());
            // SAFETY: the arguments are those of `find_winners`; there is room for one of each bag and column, and an
            // offset for each bag of each table, as was checked, and the kernel stays within the lookups whatever
            // offsets hold. No other stream uses the winners since `stream_use.write`, or the rest since `take_turn`.
            unsafe { kernel.launch(stream, Grid::line(self.sizes.bags as u32, 128), args)? };
        }
        Ok(())
    }

    /// Launch geometry of its kernels.
    ///
    /// # Errors
    ///
    /// The driver does not report the number of registers.
    pub fn geometry(&self) -> Result<Vec<Geometry>, Error> {
        let mut all = Vec::new();
        for kernels in &self.kernels {
            let both = kernels.kind.geometry(self.settings.rule, self.windows, self.multiprocessors);
            for (mut geometry, kernel) in both.into_iter().zip([&kernels.rows, &kernels.runs]) {
                geometry.registers = Some(kernel.registers()?);
                all.push(geometry);
            }
        }
        Ok(all)
    }
}

impl<G> Drop for RowOptimizer<G> {
    fn drop(&mut self) {
        // The buffers keep the stream that they were made in. After a failed kernel there is nothing to wait for.
        let _ = self.stream_use.wait(self.numbers.device());
    }
}
