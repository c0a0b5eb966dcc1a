//! Reads the items of one long array, even if it is damaged.

use crate::byte_source::Feed;
use crate::json::{Cursor, Fault};
use crate::repairs::{Note, Notes};
use std::io;

/// Receiver of the items of a list.
pub(crate) trait Sink {
    /// Reads the object at the cursor and stores it; on a fault nothing is stored. `base` is the
    /// offset of the cursor's first byte.
    fn object(&mut self, cursor: &mut Cursor<'_>, base: u64) -> Result<(), Fault>;

    /// Whether `bytes`, which begin with `{`, look like the start of an item and not of an
    /// object inside one.
    fn looks_like_item(bytes: &[u8]) -> bool;

    /// Returns the notes in which repairs are counted.
    fn notes(&mut self) -> &mut Notes;
}

/// End of a list, with its offset in the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At its closing bracket.
    Closed(u64),
    /// Before the first item at or after the stop.
    Stopped(u64),
    /// At the end of the file, or with nothing readable left.
    Lost,
}

/// Result of one step.
enum Step {
    Item,
    End(End),
}

/// Maximum number of events or nodes in a file: a few compressed bytes can hold any number of them.
pub(crate) const MOST: u64 = 20_000_000;
/// Message for a file with more.
pub(crate) const TOO_MANY: &str =
    "it holds more than 20,000,000 events: record fewer steps, or fewer kinds of events";

/// Reads items into `sink` from `at`, which is after the opening bracket, or at an item.
///
/// `stop` is an offset of the whole.
///
/// # Errors
/// If the file cannot be read, or has more items than [`MOST`].
pub(crate) fn read_list<F: Feed, S: Sink>(
    feed: &mut F,
    at: usize,
    stop: u64,
    sink: &mut S,
) -> io::Result<End> {
    read_some(feed, at, stop, MOST, sink)
}

/// Reads at most `left` items, otherwise like [`read_list`].
fn read_some<F: Feed, S: Sink>(
    feed: &mut F,
    mut at: usize,
    stop: u64,
    mut left: u64,
    sink: &mut S,
) -> io::Result<End> {
    let mut after_value = false;
    let mut next_item = NextItem::default();
    loop {
        let base = feed.base();
        let mut cursor = Cursor::new(feed.bytes());
        cursor.ended = feed.ended();
        cursor.at = at;
        cursor.after_value = after_value;
        let mut steps = 0u32;
        let fault = loop {
            let step = step(&mut cursor, base, stop, sink);
            if step.is_ok() {
                at = cursor.at;
                after_value = cursor.after_value;
                count(std::mem::take(&mut cursor.quirks), base, sink);
            }
            match step {
                Ok(Step::Item) if steps < 4096 => steps += 1,
                Ok(Step::Item) => break None,
                Ok(Step::End(end)) => return Ok(end),
                Err(fault) => break Some(fault),
            }
        };
        feed.reached(at);
        left = left.checked_sub(u64::from(steps)).ok_or_else(|| io::Error::other(TOO_MANY))?;
        let Some(fault) = fault else { continue };
        if fault == Fault::End && feed.more(at)? {
            at = 0;
            continue;
        }
        // The item itself is broken. `at` is before the commas in front of it, which are counted.
        let mut lead = Cursor::new(feed.bytes());
        (lead.at, lead.after_value) = (at, after_value);
        let start = if lead.item().is_ok() { lead.at } else { feed.bytes().len() };
        count(lead.quirks, feed.base(), sink);
        let next = next_item.after::<F, S>(feed, start)?.map(|next| (next - feed.base()) as usize);
        let limit = next.unwrap_or(feed.bytes().len());
        let mut within = Cursor::new(&feed.bytes()[..limit]);
        within.at = start;
        let whole = within.at < limit && within.skip().is_ok();
        let place = feed.base() + start as u64;
        if !whole && next.is_none() {
            let end = feed.base() + feed.bytes().len() as u64;
            match fault {
                Fault::End => sink.notes().add(Note::Truncated, end),
                Fault::Unexpected => sink.notes().add(Note::SkippedItem, place),
            }
            return Ok(End::Lost);
        }
        sink.notes().add(Note::SkippedItem, place);
        at = if whole { within.at } else { limit };
        after_value = whole;
    }
}

/// Reads one item, or the end of the list.
#[inline]
fn step<S: Sink>(cursor: &mut Cursor<'_>, base: u64, stop: u64, sink: &mut S) -> Result<Step, Fault> {
    if !cursor.item()? {
        return Ok(Step::End(End::Closed(base + cursor.at as u64)));
    }
    if base + cursor.at as u64 >= stop {
        return Ok(Step::End(End::Stopped(base + cursor.at as u64)));
    }
    if cursor.bytes[cursor.at] == b'{' {
        sink.object(cursor, base)?;
    } else {
        cursor.wrong_type();
        cursor.skip()?;
    }
    Ok(Step::Item)
}

/// Counts the tolerated defects at positions from `base` on.
fn count<S: Sink>(quirks: Vec<(Note, usize)>, base: u64, sink: &mut S) {
    for (note, place) in quirks {
        sink.notes().add(note, base + place as u64);
    }
}

/// Position of the next likely item, remembered so that invalid input is searched only once.
#[derive(Default)]
struct NextItem {
    found: Option<u64>,
    none_left: bool,
}

impl NextItem {
    /// Returns the offset in the whole of the first likely item after `start`.
    fn after<F: Feed, S: Sink>(&mut self, feed: &mut F, start: usize) -> io::Result<Option<u64>> {
        let begin = feed.base() + start as u64;
        if self.none_left || self.found.is_some_and(|found| found > begin) {
            return Ok(self.found);
        }
        loop {
            self.found = find_item::<S>(feed.bytes(), start + 1).map(|at| feed.base() + at as u64);
            if self.found.is_some() {
                return Ok(self.found);
            }
            if !feed.more(0)? {
                self.none_left = true;
                return Ok(None);
            }
        }
    }
}

/// Returns the first position from `from` that looks like an item: a brace that is not a member's value.
pub(crate) fn find_item<S: Sink>(bytes: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    memchr::memchr_iter(b'{', tail).map(|offset| from + offset).find(|&at| {
        let before = bytes[..at].trim_ascii_end().last();
        before != Some(&b':') && S::looks_like_item(&bytes[at..])
    })
}
