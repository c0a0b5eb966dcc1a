//! The order in which ops begin and end, over all threads.

use steptime_graph::{HostThreadId, MarkId, MarkKind, StepGraph, TiVec};

use crate::ids::OpId;
use crate::schedule::Scheduled;
use crate::step::Step;

/// When an op begins and ends: places in one order of all that happens on the host. An op that does not run has none.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// For each op its begin and its end.
    pub spans: TiVec<OpId, Option<[usize; 2]>>,
    /// Ops in the order in which they end, those inside another before it.
    pub ended: Vec<OpId>,
    /// How many begins and ends there are.
    pub len: usize,
}

impl Order {
    pub(super) fn of(step: &Step, scheduled: &Scheduled) -> Order {
        let graph = &scheduled.graph;
        let mut order = Order {
            spans: vec![None; step.ops.len()].into(),
            ended: Vec::with_capacity(step.ops.len()),
            len: 0,
        };
        for mark in by_hand_off(graph) {
            match graph.marks[mark].kind {
                MarkKind::OpBegin(op) => order.spans[scheduled.ops[op]] = Some([order.len, usize::MAX]),
                MarkKind::OpEnd(op) => {
                    let op = scheduled.ops[op];
                    if let Some([_, end]) = &mut order.spans[op] {
                        *end = order.len;
                        order.ended.push(op);
                    }
                }
                MarkKind::CallBegin(_) | MarkKind::CallEnd(_) => continue,
            }
            order.len += 1;
        }
        for span in order.spans.iter_mut().flatten() {
            span[1] = span[1].min(order.len);
        }
        order
    }
}

/// Marks, each after the one that it waits for.
fn by_hand_off(graph: &StepGraph) -> Vec<MarkId> {
    let mut next: TiVec<HostThreadId, MarkId> =
        graph.threads.iter().map(|thread| thread.first_mark).collect();
    let mut all = Vec::with_capacity(graph.marks.len());
    loop {
        let before = all.len();
        for (thread, row) in graph.threads.iter_enumerated() {
            while next[thread] < row.end_mark {
                let mark = next[thread];
                let waits = &graph.marks[mark];
                if !waits.wraps && next[graph.marks[waits.after].thread] <= waits.after {
                    break;
                }
                all.push(mark);
                next[thread] = mark.next();
            }
        }
        if all.len() == before {
            return all;
        }
    }
}
