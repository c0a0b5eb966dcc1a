//! Timing of work on the device.

use std::time::Duration;

use super::{Error, Event, Graph, Stream};

/// Returns the median time of calls, each between two events, after a few warm-up calls. A call gets its number. The
/// launch and the events themselves take about two microseconds of it.
///
/// # Errors
///
/// Errors of the work; a kernel that failed.
pub fn median_time(
    stream: &Stream,
    calls: usize,
    mut work: impl FnMut(&Stream, usize) -> Result<(), Error>,
) -> Result<Duration, Error> {
    for call in 0..3 {
        work(stream, call)?;
    }
    let mut events = Vec::with_capacity(calls);
    for call in 0..calls {
        let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
        stream.record(&start)?;
        work(stream, call)?;
        stream.record(&end)?;
        events.push((start, end));
    }
    stream.synchronize()?;
    median(&events)
}

/// Returns the median time of a call within replays of a graph of `calls` calls: without the launches' own cost.
///
/// # Errors
///
/// Errors of the work; an operation in it that cannot be captured; a kernel that failed.
pub fn replay_time(
    stream: &Stream,
    calls: usize,
    replays: usize,
    mut work: impl FnMut(&Stream, usize) -> Result<(), Error>,
) -> Result<Duration, Error> {
    let graph = Graph::capture(stream, |stream| (0..calls).try_for_each(|call| work(stream, call)))?;
    let time = median_time(stream, replays, |_, _| {
        // SAFETY: the work borrows its operands, and the stream is waited for before this function returns.
        unsafe { graph.replay() }
    });
    // Also after an error, no launch may run when the work's buffers are freed.
    stream.synchronize()?;
    Ok(time? / u32::try_from(calls.max(1)).unwrap_or(u32::MAX))
}

fn median(events: &[(Event, Event)]) -> Result<Duration, Error> {
    let mut times = events.iter().map(|(start, end)| end.since(start)).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
