//! Lookups whose pooled rows are sent to the ranks of their samples, part by part: while one is sent, the next one is looked up.
#![allow(unsafe_code, reason = "a rank writes the memory of others")]

use std::ops::Range;

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::embedding::{Forward, Ints, Lookups, Sizes, Tables};
use steptime_cuda::peer::{Peers, Phase, Rows};
use steptime_cuda::{Event, Float, SliceMut, Stream};
use steptime_ops::embedding::{Bounds, Pooling};

use super::{Parts, Turn, all_to_all, group, others};
use crate::arg::Arg;
use crate::error::Failure;
use crate::gpu::bags::BagArgs;
use crate::gpu::row_update::find_tables;
use crate::gpu::slices::GpuSlices;
use crate::gpu::work::{Gpu, GpuWork, TableUse};
use crate::gpu_group::{GpuGroup, Link};

/// Bytes that are worth a copy of their own.
const LEAST: usize = 4 << 20;
/// Largest number of copies to a rank.
const COPIES: usize = 8;

/// Lookups, and an exchange of the results.
pub(crate) fn exchanged_bags(
    args: BagArgs,
    names: Vec<String>,
    pooling: Pooling,
    received: Parts,
) -> Box<dyn GpuWork> {
    match args.to.dtype {
        Dtype::Bf16 => Box::new(ExchangedBags::<bf16> { args, names, pooling, received, prepared: None }),
        _ => Box::new(ExchangedBags::<f32> { args, names, pooling, received, prepared: None }),
    }
}

/// Lookups of all samples in the tables of a rank, and the vectors that it receives.
#[derive(Debug)]
struct ExchangedBags<D> {
    /// Rows for other ranks are first stored in `to`.
    args: BagArgs,
    names: Vec<String>,
    pooling: Pooling,
    received: Parts,
    prepared: Option<Prepared<D>>,
}

#[derive(Debug)]
struct Prepared<D> {
    turn: Turn,
    /// Lookups of samples of other ranks, and of the own ones, which are stored at their place.
    forward: Forward<D>,
    own: Forward<D>,
    /// The own samples.
    own_bags: Range<usize>,
    /// For each other rank, the next one first: the bags of each part, and its copies.
    parts: Vec<(usize, Vec<Part>)>,
    copying: Stream,
    begin: Event,
    end: Event,
}

/// A part of the samples of a rank.
#[derive(Debug)]
struct Part {
    bags: Range<usize>,
    copies: Vec<[Rows; 2]>,
    looked_up: Event,
}

impl<D: Float> ExchangedBags<D> {
    fn lookups<'a>(&self, memory: &GpuSlices<'a>) -> Result<Lookups<'a>, Failure> {
        let [indices, offsets] = [&self.args.indices, &self.args.offsets].map(|arg| arg.device_row(memory));
        Ok(Lookups::new(self.args.to.shape()[0], Ints::I64(indices?), Ints::I64(offsets?))?)
    }

    fn tables<'a>(&self, memory: &GpuSlices<'a>) -> Result<Tables<'a>, Failure> {
        find_tables(&self.args.tables, &self.names, self.pooling, memory)
    }

    /// The place of the own samples' vectors.
    fn place(&self, rank: usize) -> Result<&Arg, Failure> {
        match self.received.get(rank).map(Vec::as_slice) {
            Some([one]) => Ok(one),
            _ => Err("the vectors of its own samples have no place of their own".into()),
        }
    }

    fn prepared(&self, gpu: &Gpu<'_, '_>, group: &GpuGroup, peers: &Peers) -> Result<Prepared<D>, Failure> {
        let (device, memory) = (gpu.stream.device(), &gpu.memory);
        let (bags, width) = (self.args.to.shape()[0], self.args.to.shape()[1]);
        let share = bags / peers.ranks();
        let tables = self.tables(memory)?;
        let lookups = self.lookups(memory)?;
        let forward = |stride: usize| {
            Forward::<D>::new(device, &tables, Sizes::from_lookups(&lookups, stride), Bounds::Error)
        };
        let place = self.place(peers.rank())?;
        let stride = if let &[pitch, 1] = place.layout.strides() { pitch } else { width };
        let (forward, own) = (forward(width)?, forward(stride)?);
        let row = width * size_of::<D>();
        let stored = Rows { address: memory.address(&self.args.to)?, rows: bags, bytes: row, pitch: row };
        let all = group.rank.gather(all_to_all::rows(&self.received, memory)?, None)?;
        let samples = |rank: usize| rank * share..(rank + 1) * share;
        let mut parts = Vec::with_capacity(peers.ranks());
        for to in others(peers) {
            let places = all.get(to).and_then(|all| all.get(peers.rank())).map_or(&[][..], Vec::as_slice);
            let pairs = Rows::pairs(&[stored.range(samples(to))], places)
                .ok_or("its ranks send other parts than are received")?;
            let count = (share * row / LEAST).clamp(1, COPIES);
            let part = |at: usize| {
                let rows = share * at / count..share * (at + 1) / count;
                let copies = pairs.iter().map(|pair| pair.map(|own| own.range(rows.clone()))).collect();
                let bags = to * share + rows.start..to * share + rows.end;
                Ok(Part { bags, copies, looked_up: Event::new(device)? })
            };
            parts.push((to, (0..count).map(part).collect::<Result<Vec<_>, Failure>>()?));
        }
        Ok(Prepared {
            turn: Turn::new(peers)?,
            forward,
            own,
            own_bags: samples(peers.rank()),
            parts,
            copying: device.stream()?,
            begin: Event::new(device)?,
            end: Event::new(device)?,
        })
    }
}

impl<D: Float> GpuWork for ExchangedBags<D> {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let group = group(gpu)?;
        let Link::Peers(peers) = &group.link else {
            return Err("NCCL exchanges flat tensors alone: compile without direct exchanges".into());
        };
        if self.prepared.is_none() {
            self.prepared = Some(self.prepared(gpu, group, peers)?);
        }
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let Link::Peers(peers) = &group(gpu)?.link else { return Err("it is not prepared".into()) };
        let stream = gpu.stream;
        let (tables, lookups) = (self.tables(&gpu.memory)?, self.lookups(&gpu.memory)?);
        let place = self.place(peers.rank())?.clone();
        let Some(Prepared { turn, forward, own, own_bags, parts, copying, begin, end }) = &mut self.prepared
        else {
            return Err("it is not prepared".into());
        };
        let width = self.args.to.shape()[1];
        let mut stored: SliceMut<'_, D> = self.args.to.device_row_mut(&mut gpu.memory)?;
        turn.next();
        stream.record(begin)?;
        copying.wait(begin)?;
        others(peers).try_for_each(|to| turn.signal(peers, copying, to, Phase::Ready))?;
        for (to, parts) in parts.iter() {
            for (at, part) in parts.iter().enumerate() {
                let [first, last] = [part.bags.start * width, part.bags.end * width];
                let mut rows = stored.slice(first..last);
                forward.run_bags(stream, &tables, &lookups, part.bags.clone(), &mut rows)?;
                stream.record(&part.looked_up)?;
                if at == 0 {
                    turn.wait(peers, copying, *to, Phase::Ready)?;
                }
                copying.wait(&part.looked_up)?;
                for [from, place] in &part.copies {
                    // SAFETY: the rows are in the memory of sessions, which live until all ranks have ended. They were looked up before. The places of
                    // a rank that is ready are free, and it waits before it reads them until this one is done.
                    unsafe { peers.copy(copying, from, place) }?;
                }
            }
            turn.signal(peers, copying, *to, Phase::Done)?;
        }
        let (_, mut rows) = place.device_mut::<D>(&mut gpu.memory)?.split_at(place.layout.offset());
        own.run_bags(stream, &tables, &lookups, own_bags.clone(), &mut rows)?;
        others(peers).try_for_each(|from| turn.wait(peers, copying, from, Phase::Done))?;
        copying.record(end)?;
        Ok(stream.wait(end)?)
    }

    fn check(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let (tables, lookups) = (self.tables(&gpu.memory)?, self.lookups(&gpu.memory)?);
        let Some(Prepared { forward, own, .. }) = &mut self.prepared else { return Ok(()) };
        for one in [forward, own] {
            one.check(gpu.stream, &tables, &lookups)?;
        }
        Ok(())
    }

    fn is_exchange(&self) -> bool {
        true
    }

    fn table_use(&self) -> Option<TableUse<'_>> {
        let BagArgs { tables, indices, offsets, to } = &self.args;
        let (names, pooling, bags) = (&self.names, self.pooling, to.shape()[0]);
        Some(TableUse { tables, names, indices, offsets, pooling, bags })
    }
}
