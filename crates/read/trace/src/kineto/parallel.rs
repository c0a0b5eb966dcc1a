//! Reads a list of events on several threads, with the same result as on one thread.
//!
//! Each piece of the list begins where an event seems to begin. That guess is right if the reader
//! of the previous piece arrives exactly there; then the two are joined. Otherwise the piece is read
//! again from where the previous reader arrived.

use super::Builder;
use crate::byte_source::Feed;
use crate::complete_bytes::CompleteBytes;
use crate::list::{End, find_item, read_list};
use crate::shared_window::Window;
use std::io;

/// Minimum size of a piece, in bytes.
const PIECE: u64 = 4 << 20;
/// Bytes read before the position from which an event is searched: they distinguish an event from an object inside one.
const BEFORE: u64 = 256;

/// Reads events into `builder` from `at`, after the opening bracket, on up to `threads` threads.
pub(crate) fn read_events<F: Feed>(
    feed: &mut F,
    at: usize,
    threads: usize,
    builder: &mut Builder,
) -> io::Result<End> {
    let from = feed.base() + at as u64;
    let starts = feed.whole().filter(|_| threads > 1).and_then(|whole| {
        let count = (threads as u64).min(whole.length().saturating_sub(from) / PIECE);
        Some((whole, split(whole, from, count)?))
    });
    let Some((whole, starts)) = starts else { return read_list(feed, at, u64::MAX, builder) };
    let end = read_pieces(whole, &starts, builder)?;
    if let End::Closed(offset) | End::Stopped(offset) = end {
        feed.go_to(offset);
    }
    Ok(end)
}

/// Returns the likely starts of `count` pieces of about the same size; `None` if there are fewer than two.
pub(crate) fn split(whole: CompleteBytes<'_>, from: u64, count: u64) -> Option<Vec<u64>> {
    let size = whole.length().saturating_sub(from) / count.max(1);
    let mut starts = vec![from];
    for piece in 1..count {
        let start = first_event(whole, from + piece * size)?;
        if starts.last() < Some(&start) {
            starts.push(start);
        }
    }
    (starts.len() > 1).then_some(starts)
}

/// Returns the offset of the first likely event from an offset on; `None` if a window contains none.
fn first_event(whole: CompleteBytes<'_>, from: u64) -> Option<u64> {
    let begin = from.saturating_sub(BEFORE);
    let mut window = Window::new(whole, begin);
    window.more(0).ok()?;
    let found = find_item::<Builder>(window.bytes(), (from - begin) as usize)?;
    Some(begin + found as u64)
}

/// Reads the pieces that begin at `starts` and joins them in order.
pub(crate) fn read_pieces(
    whole: CompleteBytes<'_>,
    starts: &[u64],
    builder: &mut Builder,
) -> io::Result<End> {
    let read =
        |start: u64, stop: u64, into: &mut Builder| read_list(&mut Window::new(whole, start), 0, stop, into);
    let stop = |piece: usize| starts.get(piece + 1).copied().unwrap_or(u64::MAX);
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
