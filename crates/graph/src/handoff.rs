//! Hand-offs between host threads, found by order: where in (nearly) every step the same mark of another
//! thread comes right before, one thread lets the other go on.

use steptime_trace::Nanos;

use crate::graph::Mark;
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

fn waits_long(marks: &[Mark], samples: &Samples, mark: u32) -> bool {
    let row = &marks[mark as usize];
    (0..samples.steps()).all(|step| samples.gap(step, mark, row).is_none_or(|gap| gap > LONG_WAIT))
}
