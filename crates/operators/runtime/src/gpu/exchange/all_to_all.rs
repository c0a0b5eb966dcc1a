//! Parts of matrices that each rank sends to each other one.
#![allow(unsafe_code, reason = "a rank writes the memory of others")]

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::nccl::Communicator;
use steptime_cuda::peer::{Peers, Phase, Rows};
use steptime_cuda::{Event, Float, Stream};

use super::{Turn, group, others};
use crate::arg::Arg;
use crate::error::Failure;
use crate::gpu::slices::GpuSlices;
use crate::gpu::work::{FlatExchange, Gpu, GpuWork};
use crate::gpu_group::{GpuGroup, Link};

/// For each rank the matrices that are sent to it, or received from it: together they are the columns of one matrix, or its elements in order.
pub(crate) type Parts = Vec<Vec<Arg>>;

/// An exchange of parts between all ranks.
#[derive(Debug)]
pub(crate) struct GpuAllToAll {
    sent: Parts,
    received: Parts,
    /// The whole tensors with the sizes of their parts, where both are flat.
    flat: Option<[(Arg, Vec<usize>); 2]>,
    direct: Option<Direct>,
}

/// The exchange over memory that all GPUs reach.
#[derive(Debug)]
struct Direct {
    turn: Turn,
    /// For each rank the rows here, and their places there.
    copies: Vec<Vec<[Rows; 2]>>,
    /// Copies within the GPU, beside those to others.
    beside: Stream,
    begin: Event,
    end: Event,
}

impl GpuAllToAll {
    /// The exchange of flat tensors, of which each rank has a part of these sizes.
    pub(crate) fn from_flat(
        sent: (Arg, Vec<usize>),
        received: (Arg, Vec<usize>),
    ) -> Result<GpuAllToAll, String> {
        let parts = |(whole, sizes): &(Arg, Vec<usize>)| -> Result<Parts, String> {
            let mut start = 0;
            let part = |&size: &usize| {
                let range = start..start + size;
                start += size;
                let layout = whole.layout.slice(0, range, 1).map_err(|error| error.to_string())?;
                Ok(if size == 0 { Vec::new() } else { vec![Arg { layout, pad: 0, ..whole.clone() }] })
            };
            sizes.iter().map(part).collect()
        };
        let [from, to] = [parts(&sent)?, parts(&received)?];
        Ok(GpuAllToAll { sent: from, received: to, flat: Some([sent, received]), direct: None })
    }

    /// The exchange of matrices.
    pub(crate) fn new(sent: Parts, received: Parts) -> GpuAllToAll {
        GpuAllToAll { sent, received, flat: None, direct: None }
    }

    fn exchange_by_nccl(&self, communicator: &Communicator, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let [(from, sent), (to, received)] = self
            .flat
            .as_ref()
            .ok_or("NCCL exchanges flat tensors alone: compile without direct exchanges")?;
        match to.dtype {
            Dtype::Bf16 => exchange::<bf16>(communicator, gpu, (from, sent), (to, received)),
            _ => exchange::<f32>(communicator, gpu, (from, sent), (to, received)),
        }
    }
}

/// The exchange of elements of one type by NCCL.
fn exchange<T: Float>(
    communicator: &Communicator,
    gpu: &mut Gpu<'_, '_>,
    (from, sent): (&Arg, &[usize]),
    (to, received): (&Arg, &[usize]),
) -> Result<(), Failure> {
    let source = from.device_row::<T>(&gpu.memory)?;
    let mut target = to.device_row_mut::<T>(&mut gpu.memory)?;
    Ok(communicator.all_to_all(gpu.stream, (source, sent), (&mut target, received))?)
}

impl Direct {
    fn new(
        exchange: &GpuAllToAll,
        group: &GpuGroup,
        peers: &Peers,
        stream: &Stream,
        memory: &GpuSlices<'_>,
    ) -> Result<Direct, Failure> {
        let [sent, received] = [&exchange.sent, &exchange.received].map(|parts| rows(parts, memory));
        let all = group.rank.gather(received?, None)?;
        let mut copies = Vec::with_capacity(all.len());
        for (from, places) in sent?.iter().zip(&all) {
            let to = places.get(peers.rank()).map_or(&[][..], Vec::as_slice);
            copies.push(Rows::pairs(from, to).ok_or("its ranks send other parts than are received")?);
        }
        let device = stream.device();
        let (begin, end) = (Event::new(device)?, Event::new(device)?);
        Ok(Direct { turn: Turn::new(peers)?, copies, beside: device.stream()?, begin, end })
    }

    fn launch(&mut self, peers: &Peers, stream: &Stream) -> Result<(), Failure> {
        let Direct { turn, copies, beside, begin, end } = self;
        turn.next();
        others(peers).try_for_each(|to| turn.signal(peers, stream, to, Phase::Ready))?;
        stream.record(begin)?;
        beside.wait(begin)?;
        // SAFETY: of these copies and those below: the rows are in the memory of sessions, which live until all ranks have ended. This rank's operands
        // are complete. The places of a rank that is ready are free, and it waits before it reads them until this one is done.
        copies[peers.rank()].iter().try_for_each(|[from, to]| unsafe { peers.copy(beside, from, to) })?;
        beside.record(end)?;
        for to in others(peers) {
            turn.wait(peers, stream, to, Phase::Ready)?;
            // SAFETY: as above.
            copies[to].iter().try_for_each(|[from, place]| unsafe { peers.copy(stream, from, place) })?;
            turn.signal(peers, stream, to, Phase::Done)?;
        }
        others(peers).try_for_each(|from| turn.wait(peers, stream, from, Phase::Done))?;
        Ok(stream.wait(end)?)
    }
}

/// The rows of parts in the memory of an instruction.
pub(super) fn rows(parts: &Parts, memory: &GpuSlices<'_>) -> Result<Vec<Vec<Rows>>, Failure> {
    let of = |arg: &Arg| -> Result<Rows, Failure> {
        let (size, address) = (arg.dtype.size() as usize, memory.address(arg)?);
        let row = |rows: usize, width: usize, pitch: usize| Rows {
            address,
            rows,
            bytes: width * size,
            pitch: pitch * size,
        };
        match (arg.layout.shape(), arg.layout.strides()) {
            (&[len], &[1]) => Ok(row(1, len, len)),
            (&[rows, width], &[pitch, 1]) => Ok(row(rows, width, pitch)),
            _ => Err("it exchanges matrices whose rows have gaps".into()),
        }
    };
    parts.iter().map(|part| part.iter().map(of).collect()).collect()
}

impl GpuWork for GpuAllToAll {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let group = group(gpu)?;
        if let (Link::Peers(peers), None) = (&group.link, &self.direct) {
            self.direct = Some(Direct::new(self, group, peers, gpu.stream, &gpu.memory)?);
        }
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        match (&group(gpu)?.link, &mut self.direct) {
            (Link::Peers(peers), Some(direct)) => direct.launch(peers, gpu.stream),
            (Link::Peers(_), None) => Err("it is not prepared".into()),
            (Link::Nccl(communicator), _) => self.exchange_by_nccl(communicator, gpu),
        }
    }

    fn is_exchange(&self) -> bool {
        true
    }

    fn flat_exchange(&self) -> Option<FlatExchange<'_>> {
        let whole = self.flat.as_ref()?;
        Some(FlatExchange { sent: &self.sent, received: &self.received, whole })
    }
}
