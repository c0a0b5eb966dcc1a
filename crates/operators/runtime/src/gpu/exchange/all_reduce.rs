//! Sums over all ranks.
#![allow(unsafe_code, reason = "a rank writes the memory of others")]

use steptime_cuda::nccl::Reduction;
use steptime_cuda::peer::{Phase, Sum};

use super::{Turn, group, others};
use crate::arg::Arg;
use crate::error::Failure;
use crate::gpu::work::{Gpu, GpuWork};
use crate::gpu_group::Link;

/// Elements that become their sums over all ranks.
#[derive(Debug)]
pub(crate) struct GpuAllReduce {
    values: Arg,
    direct: Option<Direct>,
}

/// The sum over memory that all GPUs reach.
#[derive(Debug)]
struct Direct {
    turn: Turn,
    sum: Sum,
    /// Addresses of the elements of all ranks.
    buffers: Vec<u64>,
}

impl GpuAllReduce {
    pub(crate) fn new(values: Arg) -> GpuAllReduce {
        GpuAllReduce { values, direct: None }
    }
}

impl GpuWork for GpuAllReduce {
    fn prepare(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let group = group(gpu)?;
        let Link::Peers(peers) = &group.link else { return Ok(()) };
        if self.direct.is_none() {
            let own = gpu.memory.address(&self.values)?;
            let all = group.rank.gather((own, self.values.len()), None)?;
            if all.iter().any(|one| one.1 != self.values.len()) {
                return Err("its ranks add different numbers of elements".into());
            }
            let sum = Sum::new(gpu.stream.device(), peers.ranks())?;
            let buffers = all.iter().map(|one| one.0).collect();
            self.direct = Some(Direct { turn: Turn::new(peers)?, sum, buffers });
        }
        Ok(())
    }

    fn launch(&mut self, gpu: &mut Gpu<'_, '_>) -> Result<(), Failure> {
        let (group, stream) = (group(gpu)?, gpu.stream);
        match (&group.link, &mut self.direct) {
            (Link::Nccl(communicator), _) => {
                let mut values = self.values.device_row_mut::<f32>(&mut gpu.memory)?;
                Ok(communicator.all_reduce(stream, &mut values, Reduction::Sum)?)
            }
            (Link::Peers(_), None) => Err("it is not prepared".into()),
            (Link::Peers(peers), Some(Direct { turn, sum, buffers })) => {
                turn.next();
                for phase in [Phase::Ready, Phase::Done] {
                    others(peers).try_for_each(|to| turn.signal(peers, stream, to, phase))?;
                    others(peers).try_for_each(|from| turn.wait(peers, stream, from, phase))?;
                    if phase == Phase::Ready {
                        // SAFETY: the buffers are in the memory of sessions, which live until all ranks have ended. All ranks are ready: their
                        // earlier work no longer uses the buffers, and their later work waits until all are done.
                        unsafe { sum.run(stream, buffers, self.values.len(), peers.rank()) }?;
                    }
                }
                Ok(())
            }
        }
    }

    fn is_exchange(&self) -> bool {
        true
    }
}
