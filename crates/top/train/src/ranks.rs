//! Ranks of a run: threads of this process, each with its own device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use steptime_cuda::Device;
use steptime_cuda::nccl::{Communicator, UniqueId};
use steptime_cuda::peer::{Mailbox, Peers};
use steptime_runtime::{GpuGroup, Link, Rank};

use crate::error::Error;
use crate::{Failure, message};

/// Time between two looks at the group.
const LOOK: Duration = Duration::from_millis(100);

/// Way of data between GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Exchanges {
    /// `direct` where all GPUs are linked.
    Auto,
    /// Each GPU writes the memory of the others.
    Direct,
    /// NVIDIA's NCCL.
    Nccl,
}

/// The groups of GPUs of the ranks of this process, which end with the run.
#[derive(Default)]
pub struct Groups(Mutex<Vec<GpuGroup>>);

impl Groups {
    /// Joins the group of all ranks' GPUs, which are linked if they exchange directly; `None` for a single rank.
    ///
    /// # Errors
    /// Where NCCL is missing, or the GPUs cannot reach each other.
    pub fn join(&self, device: &Device, rank: &Rank, direct: bool) -> Result<Option<GpuGroup>, Failure> {
        if rank.ranks() == 1 {
            return Ok(None);
        }
        let link = if direct { Link::Peers(peers(device, rank)?) } else { Link::Nccl(nccl(device, rank)?) };
        let group = GpuGroup { rank: rank.clone(), link };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(group.clone());
        Ok(Some(group))
    }

    /// Ends the waits of all ranks' GPUs.
    fn abort(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(GpuGroup::abort);
    }

    /// Takes the group of a rank's GPU, which ends where its last use does.
    fn leave(&self, rank: &Rank) -> Option<GpuGroup> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|one| one.rank.rank() == rank.rank())?;
        Some(all.swap_remove(place))
    }
}

/// The group of GPUs that write the memory of one another.
fn peers(device: &Device, rank: &Rank) -> Result<Peers, Failure> {
    let mailbox = Mailbox::new(device, rank.ranks())?;
    let all = rank.gather(mailbox.address(), None)?;
    let all = all.iter().map(|one| (**one).clone()).collect();
    Ok(Peers::join(mailbox, rank.rank(), all)?)
}

/// The group of GPUs that exchange by NCCL.
fn nccl(device: &Device, rank: &Rank) -> Result<Communicator, Failure> {
    let own = if rank.rank() == 0 { Some(*UniqueId::new()?.bytes()) } else { None };
    let all = rank.gather(own, None)?;
    let id = all.first().and_then(|first| **first).ok_or("no rank has the identity of the group")?;
    Ok(Communicator::join(device, UniqueId::from_bytes(id), rank.rank(), rank.ranks())?)
}

/// Runs work on each rank, and returns the result of the first one. Where a rank fails, all others end.
///
/// # Errors
/// The error of the rank that failed first; with several ranks it names the rank.
pub fn run<R: Send>(
    ranks: usize,
    work: impl Fn(&Rank, &Groups) -> Result<R, Failure> + Sync,
) -> Result<R, Failure> {
    let groups = Groups::default();
    let mut group = Rank::group(ranks);
    if ranks == 1 {
        let rank = group.pop().ok_or("there is no rank")?;
        return work(&rank, &groups);
    }
    let watch = group.first().map(Rank::watch).ok_or("there is no rank")?;
    let ended = AtomicBool::new(false);
    let one = |rank: Rank| {
        // No rank leaves before all are done.
        let done = work(&rank, &groups).and_then(|done| {
            rank.gather((), None)?;
            drop(groups.leave(&rank));
            Ok(done)
        });
        if let Err(failure) = &done {
            rank.fail(&message(&**failure));
        }
        done
    };
    let (one, ended, groups, watch) = (&one, &ended, &groups, &watch);
    let mut results: Vec<Option<Result<R, Failure>>> = thread::scope(|scope| {
        let threads: Vec<_> = group.into_iter().map(|rank| scope.spawn(move || one(rank))).collect();
        scope.spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if watch.check().is_err() {
                    // Exchanges in progress wait for the rank that failed.
                    groups.abort();
                }
                thread::sleep(LOOK);
            }
        });
        let results = threads.into_iter().map(|thread| thread.join().ok()).collect();
        ended.store(true, Ordering::Release);
        results
    });
    let failed = results.iter().any(|result| !matches!(result, Some(Ok(_))));
    match (failed, watch.check()) {
        (true, Err(failure)) => Err(failure.into()),
        _ => results.swap_remove(0).unwrap_or_else(|| Err(Error::Options("rank 0 failed".to_owned()).into())),
    }
}
