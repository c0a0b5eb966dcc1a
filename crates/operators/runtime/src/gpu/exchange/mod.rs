//! Exchanges between the ranks of a job on GPUs.

mod all_reduce;
mod all_to_all;
mod bags;

use steptime_cuda::peer::{Peers, Phase};
use steptime_cuda::{Error, Stream};

pub(crate) use self::all_reduce::GpuAllReduce;
pub(crate) use self::all_to_all::{GpuAllToAll, Parts};
pub(crate) use self::bags::exchanged_bags;
use super::work::Gpu;
use crate::error::Failure;
use crate::gpu_group::GpuGroup;

/// The group of an instruction.
fn group<'r>(gpu: &Gpu<'r, '_>) -> Result<&'r GpuGroup, Failure> {
    gpu.group.ok_or_else(|| "it exchanges with other ranks, and the session has none".into())
}

/// An exchange by its number, which happens for the `turn`-th time.
#[derive(Debug, Clone, Copy)]
struct Turn {
    exchange: usize,
    turn: u32,
}

impl Turn {
    /// The first turn of a new exchange is the next one.
    fn new(peers: &Peers) -> Result<Turn, Error> {
        Ok(Turn { exchange: peers.new_exchange()?, turn: 0 })
    }

    fn next(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    fn signal(&self, peers: &Peers, stream: &Stream, to: usize, phase: Phase) -> Result<(), Error> {
        peers.signal(stream, to, (self.exchange, phase), self.turn)
    }

    fn wait(&self, peers: &Peers, stream: &Stream, from: usize, phase: Phase) -> Result<(), Error> {
        peers.wait(stream, from, (self.exchange, phase), self.turn)
    }
}

/// The other ranks, the next one first, so that no two ranks begin with the same one.
fn others(peers: &Peers) -> impl Iterator<Item = usize> + use<> {
    let (own, ranks) = (peers.rank(), peers.ranks());
    (1..ranks).map(move |distance| (own + distance) % ranks)
}
