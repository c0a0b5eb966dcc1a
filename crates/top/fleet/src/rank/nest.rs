//! Nesting of the host's ops and calls.

use std::cmp::Reverse;

use steptime_graph::names::EventName;
use steptime_graph::{Error, check_nesting};
use steptime_trace::{Nanos, Trace};

const NONE: u32 = u32::MAX;

/// Ops and calls, each with the op around it.
pub(super) struct Nest {
    parents: Vec<u32>,
    of_calls: Vec<u32>,
    /// Time of each op without the ops within it; zero for step marks, which are windows, not work.
    pub own: Vec<Nanos>,
}

impl Nest {
    /// Nests the ops and calls of a trace.
    ///
    /// # Errors
    /// If ops nest deeper than the supported depth: each collective visits all ops around its launch.
    pub(super) fn build(trace: &Trace) -> Result<Nest, Error> {
        let (ops, calls) = (&trace.ops, &trace.calls);
        let is_step: Vec<bool> =
            trace.names.iter().map(|(_, name)| EventName::parse(name).is_step()).collect();
        let mut nest = Nest {
            parents: vec![NONE; ops.len()],
            of_calls: vec![NONE; calls.len()],
            own: vec![Nanos::ZERO; ops.len()],
        };
        // Ops are numbered from 0, calls after all ops.
        let mut threads: Vec<Vec<u32>> = vec![Vec::new(); trace.threads.len()];
        for op in (0..ops.len()).filter(|&op| !is_step[ops.name[op].index()]) {
            threads[ops.thread[op].index()].push(op as u32);
        }
        for call in 0..calls.len() {
            threads[calls.thread[call].index()].push((ops.len() + call) as u32);
        }
        let depths = threads.into_iter().map(|events| nest.thread(trace, events));
        check_nesting(depths.max().unwrap_or(0))?;
        Ok(nest)
    }

    /// Nests one thread, and returns the depth. Of events that begin together the longer one is outside, and an op is outside a call.
    fn thread(&mut self, trace: &Trace, mut events: Vec<u32>) -> usize {
        let (ops, calls) = (&trace.ops, &trace.calls);
        let times = |event: u32| match (event as usize).checked_sub(ops.len()) {
            Some(call) => (calls.start[call], calls.end(call)),
            None => (ops.start[event as usize], ops.end(event as usize)),
        };
        events.sort_by_key(|&event| {
            let (start, end) = times(event);
            (start, Reverse(end), event)
        });
        let mut open: Vec<(Nanos, u32)> = Vec::new();
        let mut deepest = 0;
        for event in events {
            let (start, end) = times(event);
            while open.last().is_some_and(|&(outer, _)| outer <= start) {
                open.pop();
            }
            let around = open.last().copied();
            let parent = around.map_or(NONE, |(_, op)| op);
            if let Some(call) = (event as usize).checked_sub(ops.len()) {
                self.of_calls[call] = parent;
                continue;
            }
            // An event that ends after the op it began in is cut to fit.
            let end = around.map_or(end, |(outer, _)| end.min(outer));
            self.parents[event as usize] = parent;
            self.own[event as usize] += end - start;
            if let Some((_, outer)) = around {
                self.own[outer as usize] -= end - start;
            }
            open.push((end, event));
            deepest = deepest.max(open.len());
        }
        deepest
    }

    /// Returns the innermost op around a call.
    pub(super) fn around(&self, call: usize) -> Option<usize> {
        known(self.of_calls[call])
    }

    /// Returns an op and those around it, from the inside out.
    pub(super) fn outwards(&self, op: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(op, |&op| known(self.parents[op]))
    }
}

fn known(op: u32) -> Option<usize> {
    (op != NONE).then_some(op as usize)
}
