//! The order in which ops begin and end, over all threads.

use steptime_graph::{MarkKind, TiVec};

use crate::ids::OpId;
use crate::schedule::ScheduledStep;
use crate::step::StepIr;

/// Begins and ends of ops, as places in one order of all host events. An op that does not run has none.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// For each op, its begin and its end.
    pub spans: TiVec<OpId, Option<[usize; 2]>>,
    /// Ops in the order in which they end, those inside another before it.
    pub ended: Vec<OpId>,
    /// At each place, the op that begins (`false`) or ends (`true`) there.
    pub places: Vec<(OpId, bool)>,
    /// Number of begins and ends.
    pub len: usize,
}

impl Order {
    pub(super) fn new(step: &StepIr, scheduled: &ScheduledStep) -> Order {
        let graph = &scheduled.graph;
        let mut order = Order {
            spans: vec![None; step.ops.len()].into(),
            ended: Vec::with_capacity(step.ops.len()),
            places: Vec::new(),
            len: 0,
        };
        for mark in graph.marks_by_hand_off() {
            match graph.marks[mark].kind {
                MarkKind::OpBegin(op) => {
                    order.spans[scheduled.ops[op]] = Some([order.len, usize::MAX]);
                    order.places.push((scheduled.ops[op], false));
                }
                MarkKind::OpEnd(op) => {
                    let op = scheduled.ops[op];
                    order.places.push((op, true));
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
