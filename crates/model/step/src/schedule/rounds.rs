//! Ops that are repeated on all threads, in rounds: within a round, threads hand over to one another as in the recording.

use rustc_hash::FxHashMap;
use steptime_graph::{ActivityId, Blocking, Call, HostThreadId, MarkId, StepGraph};

use super::ReusedRows;
use super::marks::still_there;

/// For each round after the first, the marks that repeat those of the recording.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    now: Vec<FxHashMap<MarkId, MarkId>>,
}

impl Rounds {
    /// Adds a mark of a round with the recorded mark that it repeats; round 0 is ignored.
    pub(super) fn add(&mut self, was: MarkId, round: u32, now: MarkId) {
        let Some(place) = (round as usize).checked_sub(1) else { return };
        if self.now.len() <= place {
            self.now.resize_with(place + 1, FxHashMap::default);
        }
        self.now[place].insert(was, now);
    }

    /// Copies the hand-offs of repeated ops. Marks that followed them on a thread now follow the last round, and a round begins where these did.
    pub(super) fn link(&self, graph: &mut StepGraph, base: &StepGraph, carried: &mut ReusedRows) {
        let Some(last) = self.now.last() else { return };
        for to in graph.marks.keys() {
            let (row, was) = (graph.marks[to], carried.marks[to]);
            let is_hand_off = !row.wraps && graph.marks[row.after].thread != row.thread;
            if is_hand_off && was.is_some_and(|was| !last.contains_key(&was)) {
                self.after_all(graph, base, carried, to);
            }
        }
        for was in base.marks.keys().filter(|&was| base.is_hand_off(was)) {
            let row = base.marks[was];
            if let Some(to) = carried.marks.iter().position(|at| *at == Some(was)).map(MarkId::from)
                && last.contains_key(&was)
            {
                self.before_others(graph, to);
            }
            for round in &self.now {
                let (Some(&to), Some((from, _))) = (round.get(&was), still_there(base, round, row.after))
                else {
                    continue;
                };
                (graph.marks[to].after, graph.marks[to].wraps) = (from, row.wraps);
                carried.like[to] = Some(was);
            }
        }
    }

    /// Makes the first round hand over before the second begins, also where the recording hands over one mark later.
    fn before_others(&self, graph: &mut StepGraph, to: MarkId) {
        let from = graph.marks[to].after;
        let second = self.now.first().and_then(|round| begin_of(round, graph, graph.marks[from].thread));
        if let Some(second) = second.filter(|&second| second <= from) {
            graph.marks[to].after = second.previous();
        }
    }

    /// Moves a hand-off at the end of the first round to the end of the last round. In between, each round of its own thread takes over, after the
    /// same time.
    fn after_all(&self, graph: &mut StepGraph, base: &StepGraph, carried: &mut ReusedRows, to: MarkId) {
        let mut from = graph.marks[to].after;
        let Some(was) = carried.marks[from] else { return };
        for round in &self.now {
            let Some((done, _)) = still_there(base, round, was) else { return };
            if let Some(begin) = begin_of(round, graph, graph.marks[to].thread) {
                (graph.marks[begin].after, graph.marks[begin].wraps) = (from, false);
                carried.like[begin] = carried.marks[to];
            }
            from = done;
        }
        graph.marks[to].after = from;
    }
}

/// The first mark of a round on a thread.
fn begin_of(round: &FxHashMap<MarkId, MarkId>, graph: &StepGraph, thread: HostThreadId) -> Option<MarkId> {
    round.values().copied().filter(|&mark| graph.marks[mark].thread == thread).min()
}

/// The wait of a repeated call: for its own activity, where it waited for that.
pub(super) fn own_wait(source: &Call, first: ActivityId) -> Blocking {
    match source.blocking {
        Blocking::Activity(was) if source.activities().any(|own| own == was) => {
            Blocking::Activity(ActivityId(first.0 + (was.0 - source.first_activity.0)))
        }
        Blocking::Activity(_) => Blocking::Never,
        other => other,
    }
}
