//! The ranks of a job on GPUs, and the way between them.

use steptime_cuda::nccl::Communicator;
use steptime_cuda::peer::Peers;

use crate::group::Rank;

/// The way of data between the GPUs of a job.
#[derive(Debug, Clone)]
pub enum Link {
    /// Each GPU writes the memory of the others. Exchanges read and write rows at any distance, see [`DescribedStep::direct_exchanges`].
    ///
    /// [`DescribedStep::direct_exchanges`]: crate::DescribedStep::direct_exchanges
    Peers(Peers),
    /// NVIDIA's library, over any network.
    Nccl(Communicator),
}

/// A rank of a job on a GPU.
#[derive(Debug, Clone)]
pub struct GpuGroup {
    /// The rank among the threads of the process.
    pub rank: Rank,
    /// The way to the others.
    pub link: Link,
}

impl GpuGroup {
    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.rank.ranks()
    }

    /// Ends all exchanges that wait for other ranks, from any thread; later ones fail. A stream may begin to wait again: call it until all have ended.
    pub fn abort(&self) {
        match &self.link {
            Link::Peers(peers) => peers.abort(),
            Link::Nccl(communicator) => communicator.abort(),
        }
    }
}
