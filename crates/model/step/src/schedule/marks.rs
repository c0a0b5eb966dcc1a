//! Marks: their order on each thread, and their waits.

use rustc_hash::FxHashMap;
use steptime_graph::{CallId, HostThreadId, Mark, MarkId, MarkKind, OpId, StepGraph, TiVec};

use super::ReusedRows;

/// An item inside an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Op(OpId),
    Call(CallId),
}

/// The items inside each op of a graph, and outside of all ops on each thread, in order.
pub(super) struct Items {
    of_op: TiVec<OpId, Vec<Item>>,
    of_thread: TiVec<HostThreadId, Vec<Item>>,
}

impl Items {
    pub(super) fn from_graph(graph: &StepGraph) -> Items {
        let mut items = Items {
            of_op: vec![Vec::new(); graph.ops.len()].into(),
            of_thread: vec![Vec::new(); graph.threads.len()].into(),
        };
        for (at, mark) in graph.marks.iter_enumerated() {
            let item = match mark.kind {
                MarkKind::OpBegin(op) => Item::Op(op),
                MarkKind::CallBegin(call) => Item::Call(call),
                MarkKind::OpEnd(_) | MarkKind::CallEnd(_) => continue,
            };
            match graph.enclosing_op(at) {
                Some(op) => items.of_op[op].push(item),
                None => items.of_thread[mark.thread].push(item),
            }
        }
        items
    }

    pub(super) fn within(&self, op: OpId) -> &[Item] {
        &self.of_op[op]
    }

    pub(super) fn outermost(&self, thread: HostThreadId) -> &[Item] {
        &self.of_thread[thread]
    }

    /// The calls that an op makes itself.
    pub(super) fn calls(&self, op: OpId) -> impl Iterator<Item = CallId> {
        self.of_op[op].iter().filter_map(|item| if let Item::Call(call) = item { Some(*call) } else { None })
    }
}

/// Position of an op in a list.
pub(super) fn find(items: &[Item], op: OpId) -> Option<usize> {
    items.iter().position(|item| *item == Item::Op(op))
}

/// Adds a mark; its wait is set by [`link`].
pub(crate) fn push(
    graph: &mut StepGraph,
    carried: &mut ReusedRows,
    kind: MarkKind,
    thread: HostThreadId,
    recorded: Option<MarkId>,
    like: Option<MarkId>,
) -> MarkId {
    let at = graph.marks.next_key();
    graph.marks.push(Mark { kind, thread, after: at, wraps: false });
    carried.marks.push(recorded);
    carried.gaps.push(false);
    carried.like.push(like);
    at
}

/// Sets the wait of each mark: for the one before it on its thread, or for one of another thread where the recording has a hand-off. A hand-off whose
/// ends no longer run moves to their neighbours; `stands` has further marks that can take it. Ops inserted right after the op that hands over, as
/// given by `put_in`, run before the other thread continues.
pub(crate) fn link(
    graph: &mut StepGraph,
    base: &StepGraph,
    carried: &mut ReusedRows,
    stands: &FxHashMap<MarkId, MarkId>,
    put_in: &impl Fn(OpId) -> bool,
) {
    let mut now: FxHashMap<MarkId, MarkId> =
        carried.marks.iter_enumerated().filter_map(|(now, was)| Some(((*was)?, now))).collect();
    now.extend(stands);
    for thread in graph.threads.keys() {
        let (first, end) = (graph.threads[thread].first_mark, graph.threads[thread].end_mark);
        let mut like_before = None;
        for at in first.until(end) {
            // A repeated mark has the recorded gap where the mark before it is repeated, too.
            let like = carried.like[at].take();
            carried.like[at] = like.filter(|&like| Some(base.marks[like].after) == like_before);
            like_before = like;
            let (before, wraps) = if at == first { (end.previous(), true) } else { (at.previous(), false) };
            (graph.marks[at].after, graph.marks[at].wraps) = (before, wraps);
            if let Some(was) = carried.marks[at] {
                let row = &base.marks[was];
                carried.gaps[at] = carried.marks[before] == Some(row.after) && row.wraps == wraps;
            }
        }
    }
    for thread in base.threads.iter() {
        let mut orphan: Option<Mark> = None;
        for was in thread.first_mark.until(thread.end_mark) {
            let row = base.marks[was];
            if base.is_hand_off(was) {
                orphan = Some(row);
            }
            let (Some(hand_off), Some(&at)) = (orphan, now.get(&was)) else { continue };
            orphan = None;
            let Some((from, exact)) = still_there(base, &now, hand_off.after) else { continue };
            let from = after_new(graph, from, put_in);
            (graph.marks[at].after, graph.marks[at].wraps) = (from, hand_off.wraps);
            let recorded = carried.marks[at].is_some() && carried.marks[from].is_some();
            carried.gaps[at] = exact && recorded && base.is_hand_off(was);
        }
    }
}

/// The end of the last of the ops that were inserted right after a mark, or the mark itself.
fn after_new(graph: &StepGraph, mark: MarkId, put_in: &impl Fn(OpId) -> bool) -> MarkId {
    let mut last = mark;
    let thread = graph.marks[mark].thread;
    while let Some(next) = graph.marks.get(last.next())
        && next.thread == thread
        && let MarkKind::OpBegin(op) = next.kind
        && put_in(op)
    {
        last = graph.ops[op].end;
    }
    last
}

/// A mark of the recording where it still exists, else the last before it on its thread; and whether it is the same.
pub(super) fn still_there(
    base: &StepGraph,
    now: &FxHashMap<MarkId, MarkId>,
    was: MarkId,
) -> Option<(MarkId, bool)> {
    let first = base.threads[base.marks[was].thread].first_mark;
    first.until(was.next()).rev().find_map(|mark| Some((*now.get(&mark)?, mark == was)))
}
