//! Hand-offs between host threads. If the same mark of another thread comes right before a mark in nearly every step,
//! the mark waits for it.

use steptime_trace::Nanos;
use typed_index_collections::{TiSlice, TiVec};

use crate::ids::{HostThreadId, MarkId};
use crate::samples::Samples;
use crate::tables::{Mark, Thread};

/// Minimum gap on the thread itself, in a single recorded step, that counts as a wait for another thread.
const LONG_WAIT: Nanos = Nanos(20_000);

/// Sets [`Mark::after`] of the marks that wait for another thread. Returns their number.
pub(crate) fn link(marks: &mut TiSlice<MarkId, Mark>, samples: &Samples) -> usize {
    if marks.iter().all(|mark| mark.thread == HostThreadId::MAIN) {
        return 0;
    }
    // For each mark: the mark of another thread right before it, and the number of steps in which it is.
    let mut before: TiVec<MarkId, Option<(MarkId, bool)>> = vec![None; marks.len()].into();
    let mut agree: TiVec<MarkId, u32> = vec![0; marks.len()].into();
    let mut seen: TiVec<MarkId, u32> = vec![0; marks.len()].into();
    let mut order: Vec<(Nanos, MarkId)> = Vec::new();
    let mut last_of_previous: Option<MarkId> = None;
    for step in samples.steps() {
        order.clear();
        order.extend(marks.keys().filter_map(|m| Some((samples.mark(step, m)?, m))));
        order.sort_by_key(|&(time, _)| time);
        let mut previous = last_of_previous.map(|m| (m, true));
        for &(_, at) in &order {
            if let Some((other, wraps)) = previous {
                seen[at] += 1;
                if before[at].is_none() {
                    before[at] = Some((other, wraps));
                }
                if before[at] == Some((other, wraps)) {
                    agree[at] += 1;
                }
            }
            previous = Some((at, false));
        }
        last_of_previous = order.last().map(|&(_, mark)| mark);
    }
    let mut found = 0;
    for at in marks.keys() {
        let Some((other, wraps)) = before[at] else { continue };
        let constant = agree[at] * 10 >= seen[at] * 9;
        let convincing = seen[at] > 1 || waits_long(marks, samples, at);
        if marks[other].thread != marks[at].thread && constant && convincing {
            marks[at].after = other;
            marks[at].wraps = wraps;
            found += 1;
        }
    }
    found
}

/// Links threads without any hand-off to the main thread. Such a thread works once a step and waits in between. Without
/// a link its recorded wait would be replayed as work, and would set the period.
///
/// Its first mark then waits for the last mark of the main thread that comes before it in nearly every step.
pub(crate) fn anchor(
    marks: &mut TiSlice<MarkId, Mark>,
    threads: &TiSlice<HostThreadId, Thread>,
    samples: &Samples,
) -> usize {
    let Some(main) = threads.first().filter(|main| main.first_mark < main.end_mark) else { return 0 };
    let mut found = 0;
    for thread in threads.iter().skip(1).filter(|thread| thread.first_mark < thread.end_mark) {
        let first = thread.first_mark;
        let row = marks[first];
        if !row.wraps || marks[row.after].thread != row.thread {
            continue;
        }
        let before = |mark: MarkId| {
            let pairs =
                samples.steps().filter_map(|s| Some((samples.mark(s, mark)?, samples.mark(s, first)?)));
            let (mut yes, mut all) = (0, 0);
            for (main, other) in pairs {
                all += 1;
                yes += usize::from(main <= other);
            }
            all > 0 && yes * 10 >= all * 9
        };
        let Some(step) = samples.steps().find(|&s| samples.mark(s, first).is_some()) else { continue };
        let time = samples.mark(step, first);
        let last = main
            .first_mark
            .until(main.end_mark)
            .rev()
            .find(|&m| samples.mark(step, m).is_some_and(|t| Some(t) <= time));
        let anchor =
            last.filter(|&m| before(m)).or_else(|| before(main.first_mark).then_some(main.first_mark));
        if let Some(anchor) = anchor {
            marks[first].after = anchor;
            marks[first].wraps = false;
            found += 1;
        }
    }
    found
}

fn waits_long(marks: &TiSlice<MarkId, Mark>, samples: &Samples, mark: MarkId) -> bool {
    let row = &marks[mark];
    samples.steps().all(|step| samples.gap(step, mark, row).is_none_or(|gap| gap > LONG_WAIT))
}
