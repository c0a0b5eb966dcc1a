//! Times of work on the device.

use std::time::Duration;

use super::{Error, Event, Graph, Stream};

/// The median time of calls, each between two events; a few more that are not counted come first. A call is given its
/// number. The launch and the events themselves take about two microseconds of it.
///
/// # Errors
///
/// Those of the work; a kernel that failed.
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

/// The median time of a call within replays of a graph of so many calls: without the launches' own cost.
///
/// # Errors
///
/// Those of the work; something in it that cannot be captured; a kernel that failed.
pub fn replay_time(
    stream: &Stream,
    calls: usize,
    replays: usize,
    mut work: impl FnMut(&Stream, usize) -> Result<(), Error>,
) -> Result<Duration, Error> {
    let graph = Graph::capture(stream, |stream| (0..calls).try_for_each(|call| work(stream, call)))?;
    let time = median_time(stream, replays, |_, _| {
        // SAFETY: what the work uses is borrowed by it, and the stream is waited for before this function returns.
        unsafe { graph.replay() }
    });
    // Also after an error, nothing may be under way when the work's buffers go.
    stream.synchronize()?;
    Ok(time? / u32::try_from(calls.max(1)).unwrap_or(u32::MAX))
}

fn median(events: &[(Event, Event)]) -> Result<Duration, Error> {
    let mut times = events.iter().map(|(start, end)| end.since(start)).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
