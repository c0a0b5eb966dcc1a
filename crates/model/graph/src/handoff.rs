//! Hand-offs between host threads, found by order: where in (nearly) every step the same mark of another
//! thread comes right before, one thread lets the other go on.

use steptime_trace::Nanos;

use crate::graph::{Mark, Thread};
use crate::samples::Samples;

/// With a single step to look at, a wait this long on the thread's own side speaks for a hand-off.
const LONG_WAIT: Nanos = Nanos(20_000);

/// Replaces [`Mark::after`] where another thread's mark lets a mark come. Returns how many.
pub(crate) fn link(marks: &mut [Mark], samples: &Samples) -> usize {
    let threads = marks.iter().map(|m| m.thread).max().map_or(0, |t| t + 1);
    if threads < 2 {
        return 0;
    }
    // For each mark: the mark of another thread right before it, and in how many steps.
    let mut before: Vec<Option<(u32, bool)>> = vec![None; marks.len()];
    let mut agree = vec![0u32; marks.len()];
    let mut seen = vec![0u32; marks.len()];
    let mut order: Vec<(Nanos, u32)> = Vec::new();
    let mut last_of_previous: Option<u32> = None;
    for step in 0..samples.steps() {
        order.clear();
        order.extend((0..marks.len() as u32).filter_map(|m| Some((samples.mark(step, m)?, m))));
        order.sort_by_key(|&(time, _)| time);
        let mut previous = last_of_previous.map(|m| (m, true));
        for &(_, mark) in &order {
            let at = mark as usize;
            if let Some((other, wraps)) = previous {
                seen[at] += 1;
                if before[at].is_none() {
                    before[at] = Some((other, wraps));
                }
                if before[at] == Some((other, wraps)) {
                    agree[at] += 1;
                }
            }
            previous = Some((mark, false));
        }
        last_of_previous = order.last().map(|&(_, mark)| mark);
    }
    let mut found = 0;
    for at in 0..marks.len() {
        let Some((other, wraps)) = before[at] else { continue };
        let constant = agree[at] * 10 >= seen[at] * 9;
        let convincing = seen[at] > 1 || waits_long(marks, samples, at as u32);
        if marks[other as usize].thread != marks[at].thread && constant && convincing {
            marks[at].after = other;
            marks[at].wraps = wraps;
            found += 1;
        }
    }
    found
}

/// Ties the threads that nothing lets go to the main one. A thread that works once a step and waits in between is
/// paced by the main thread somehow: left to itself, its wait would be as long as a step was, and set the pace.
///
/// It follows the mark of the main thread that comes before it, the last one that does so in nearly every step.
pub(crate) fn anchor(marks: &mut [Mark], threads: &[Thread], samples: &Samples) -> usize {
    let Some(main) = threads.first().filter(|main| main.first_mark < main.end_mark) else { return 0 };
    let mut found = 0;
    for thread in threads.iter().skip(1).filter(|thread| thread.first_mark < thread.end_mark) {
        let first = thread.first_mark;
        let row = marks[first as usize];
        if !row.wraps || marks[row.after as usize].thread != row.thread {
            continue;
        }
        let before = |mark: u32| {
            let pairs =
                (0..samples.steps()).filter_map(|s| Some((samples.mark(s, mark)?, samples.mark(s, first)?)));
            let (mut yes, mut all) = (0, 0);
            for (main, other) in pairs {
                all += 1;
                yes += usize::from(main <= other);
            }
            all > 0 && yes * 10 >= all * 9
        };
        let Some(step) = (0..samples.steps()).find(|&s| samples.mark(s, first).is_some()) else { continue };
        let time = samples.mark(step, first);
        let last = (main.first_mark..main.end_mark)
            .rev()
            .find(|&m| samples.mark(step, m).is_some_and(|t| Some(t) <= time));
        let anchor =
            last.filter(|&m| before(m)).or_else(|| before(main.first_mark).then_some(main.first_mark));
        if let Some(anchor) = anchor {
            marks[first as usize].after = anchor;
            marks[first as usize].wraps = false;
            found += 1;
        }
    }
    found
}

fn waits_long(marks: &[Mark], samples: &Samples, mark: u32) -> bool {
    let row = &marks[mark as usize];
    (0..samples.steps()).all(|step| samples.gap(step, mark, row).is_none_or(|gap| gap > LONG_WAIT))
}
