//! Exchanges between GPUs; of one rank on one GPU too.

use std::thread;

use half::bf16;
use steptime_cuda::nccl::{self, Communicator, Reduction, UniqueId};
use steptime_cuda::{Buffer, Device, Error, Graph};

use crate::support;

/// Elements of a buffer.
const COUNT: usize = 10_000;

/// Runs work on each of a number of GPUs, as the ranks of a group. Skipped without as many GPUs, or without NCCL.
fn on_gpus(ranks: usize, work: impl Fn(&Communicator) -> Result<(), Error> + Sync) {
    if support::device().is_none() {
        return;
    }
    if Device::count().expect("a driver") < ranks {
        return steptime_skips::skip("fewer GPUs than ranks");
    }
    if nccl::version().is_err() {
        return steptime_skips::skip("no NCCL");
    }
    let id = UniqueId::new().expect("an identity");
    let rank = |rank| {
        let communicator = Communicator::join(&Device::open(rank)?, id, rank, ranks)?;
        work(&communicator)
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..ranks).map(|own| scope.spawn(move || rank(own))).collect();
        all.into_iter().for_each(|one| one.join().expect("no panic").expect("an exchange"));
    });
}

fn values(rank: usize) -> Vec<f32> {
    (0..COUNT).map(|at| (at * (rank + 1)) as f32).collect()
}

/// The sum of the values of all ranks.
fn sums(ranks: usize) -> Vec<f32> {
    (0..COUNT).map(|at| (0..ranks).map(|rank| (at * (rank + 1)) as f32).sum()).collect()
}

fn reduced(communicator: &Communicator) -> Result<(), Error> {
    let stream = communicator.device().stream()?;
    let (rank, ranks) = (communicator.rank(), communicator.ranks());
    let mut sum = Buffer::from_host(&stream, &values(rank))?;
    communicator.all_reduce(&stream, &mut sum.as_mut(), Reduction::Sum)?;
    assert_eq!(sum.to_host(&stream)?, sums(ranks));
    let ones = vec![bf16::from_f32((rank + 1) as f32); COUNT];
    let mut mean = Buffer::from_host(&stream, &ones)?;
    communicator.all_reduce(&stream, &mut mean.as_mut(), Reduction::Mean)?;
    assert_eq!(mean.to_host(&stream)?, vec![bf16::from_f32((ranks + 1) as f32 / 2.0); COUNT]);
    let mut root = Buffer::from_host(&stream, &values(rank))?;
    communicator.broadcast(&stream, &mut root.as_mut(), ranks - 1)?;
    assert_eq!(root.to_host(&stream)?, values(ranks - 1));
    communicator.check()
}

/// Rank `from` sends `1000 * from + 100 * to + at` in a part of `from + 2 * to + 1` elements to rank `to`.
fn exchanged(communicator: &Communicator) -> Result<(), Error> {
    let stream = communicator.device().stream()?;
    let (rank, ranks) = (communicator.rank(), communicator.ranks());
    let len = |from: usize, to: usize| from + 2 * to + 1;
    let part =
        |from: usize, to: usize| (0..len(from, to)).map(move |at| (1000 * from + 100 * to + at) as f32);
    let own: Vec<f32> = (0..ranks).flat_map(|to| part(rank, to)).collect();
    let wanted: Vec<f32> = (0..ranks).flat_map(|from| part(from, rank)).collect();
    let sent: Vec<usize> = (0..ranks).map(|to| len(rank, to)).collect();
    let received: Vec<usize> = (0..ranks).map(|from| len(from, rank)).collect();
    let from = Buffer::from_host(&stream, &own)?;
    let mut to = Buffer::<f32>::zeros(&stream, wanted.len())?;
    communicator.all_to_all(&stream, (from.as_ref(), &sent), (&mut to.as_mut(), &received))?;
    assert_eq!(to.to_host(&stream)?, wanted);
    let wrong = communicator.all_to_all(&stream, (from.as_ref(), &sent[1..]), (&mut to.as_mut(), &received));
    assert!(matches!(wrong, Err(Error::Size { .. })), "{wrong:?}");
    Ok(())
}

fn replayed(communicator: &Communicator) -> Result<(), Error> {
    let stream = communicator.device().stream()?;
    let mut sum = Buffer::from_host(&stream, &vec![1.0_f32; COUNT])?;
    communicator.all_reduce(&stream, &mut sum.as_mut(), Reduction::Sum)?;
    stream.synchronize()?;
    let graph =
        Graph::capture(&stream, |stream| communicator.all_reduce(stream, &mut sum.as_mut(), Reduction::Sum))?;
    for _ in 0..3 {
        // SAFETY: the buffer lives, and only this stream uses it.
        unsafe { graph.replay() }?;
    }
    let sums = vec![(communicator.ranks() as f32).powi(4); COUNT];
    assert_eq!(sum.to_host(&stream)?, sums);
    Ok(())
}

#[test]
fn one_rank_exchanges_with_itself() {
    on_gpus(1, reduced);
    on_gpus(1, exchanged);
    on_gpus(1, replayed);
}

#[test]
fn two_ranks_add_and_send() {
    on_gpus(2, reduced);
    on_gpus(2, exchanged);
}

#[test]
fn exchanges_are_replayed_in_a_graph() {
    on_gpus(2, replayed);
}

#[test]
fn an_aborted_group_refuses_exchanges() {
    on_gpus(1, |communicator| {
        communicator.abort();
        let stream = communicator.device().stream()?;
        let mut sum = Buffer::from_host(&stream, &[1.0_f32])?;
        let error = communicator.all_reduce(&stream, &mut sum.as_mut(), Reduction::Sum);
        assert!(error.expect_err("it is aborted").to_string().contains("aborted"));
        Ok(())
    });
}
