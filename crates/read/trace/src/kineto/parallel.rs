//! Reads a list of events on several threads, with the result of one.
//!
//! Each piece of the list begins where an event seems to begin. That guess holds when the reader
//! of the piece before arrives exactly there; then the two are joined. Else the piece is read
//! again from where the reader before did arrive.

use super::Builder;
use crate::feed::{Feed, Slice};
use crate::list::{End, find_item, read_list};
use crate::progress::Progress;
use std::io;

/// The least that is worth a thread, in bytes.
const PIECE: usize = 4 << 20;

/// Reads events into `builder` from `at`, after the opening bracket, on up to `threads` threads.
pub(crate) fn read_events<F: Feed>(
    feed: &mut F,
    at: usize,
    threads: usize,
    builder: &mut Builder,
) -> io::Result<End> {
    let pieces = match feed.whole() {
        Some((bytes, progress)) if threads > 1 => {
            let count = threads.min((bytes.len() - at) / PIECE);
            split(bytes, at, count).map(|starts| read_pieces(bytes, &starts, progress, builder))
        }
        _ => None,
    };
    pieces.unwrap_or_else(|| read_list(feed, at, usize::MAX, builder))
}

/// Where `count` pieces of about the same size seem to begin; `None` when there are not two.
pub(crate) fn split(bytes: &[u8], at: usize, count: usize) -> Option<Vec<usize>> {
    let size = (bytes.len() - at) / count.max(1);
    let mut starts = vec![at];
    for piece in 1..count {
        let start = find_item::<Builder>(bytes, at + piece * size)?;
        if starts.last() < Some(&start) {
            starts.push(start);
        }
    }
    (starts.len() > 1).then_some(starts)
}

/// Reads the pieces that begin at `starts` and joins them in order.
pub(crate) fn read_pieces(
    bytes: &[u8],
    starts: &[usize],
    progress: &Progress<'_>,
    builder: &mut Builder,
) -> io::Result<End> {
    let read = |start: usize, stop: usize, into: &mut Builder| {
        read_list(&mut Slice::from(bytes, start, progress), start, stop, into)
    };
    let stop = |piece: usize| starts.get(piece + 1).copied().unwrap_or(usize::MAX);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..starts.len())
            .map(|piece| {
                scope.spawn(move || {
                    let mut own = Builder::default();
                    let end = read(starts[piece], stop(piece), &mut own);
                    (own, end)
                })
            })
            .collect();
        let mut end = read(starts[0], stop(0), builder)?;
        for (piece, other) in (1..).zip(others) {
            let (own, own_end) = other.join().map_err(|_| io::Error::other("a reading thread failed"))?;
            end = match end {
                End::Stopped(here) if here == starts[piece] => {
                    builder.absorb(own);
                    own_end?
                }
                End::Stopped(here) => read(here, stop(piece), builder)?,
                done => done,
            };
        }
        Ok(end)
    })
}
