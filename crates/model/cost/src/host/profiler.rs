//! Cost of the profiler itself on the host, and its subtraction from the gaps that it lengthened.

use serde::{Deserialize, Serialize};
use steptime_aten::is_compiled;
use steptime_graph::{ApiKind, CallId, HostThreadId, MarkId, MarkKind, OpId, StepGraph, TiVec};
use steptime_trace::Nanos;

/// The state of the process whose step is predicted.
///
/// Once a profiler has run in a process, its hooks in the driver stay: every runtime call takes longer from then
/// on, profiled or not. Training that is never profiled is faster than the un-profiled steps of one that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Process {
    /// A profiler has run in the process, and does not run any more.
    #[default]
    Profiled,
    /// No profiler has ever run in the process.
    Fresh,
}

/// The profiler's own cost per recorded event, in microseconds, relative to a process in one state.
///
/// Measured by running the same loops with and without the profiler; see `profiles/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfilerCost {
    /// Cost of an op.
    pub op_us: f64,
    /// Cost of an annotation.
    pub annotation_us: f64,
    /// Cost of a call that launches, records an event or waits.
    pub launch_us: f64,
    /// Cost of any other call.
    pub call_us: f64,
    /// Cost of the mark between two steps.
    pub step_us: f64,
    /// Cost of a copy from or to pageable memory: its call, or the lead of one that goes in chunks.
    pub copy_us: f64,
    /// Cost before an op that is a kernel of Inductor: its arguments are recorded.
    pub compiled_us: f64,
    /// Cost inside a call that queries a kernel's requirements: the profiler's hooks see each of its queries to the driver.
    #[serde(default)]
    pub query_us: f64,
}

impl ProfilerCost {
    /// No cost: gaps stay as the profiler saw them.
    pub const NONE: ProfilerCost = ProfilerCost {
        op_us: 0.0,
        annotation_us: 0.0,
        launch_us: 0.0,
        call_us: 0.0,
        step_us: 0.0,
        copy_us: 0.0,
        compiled_us: 0.0,
        query_us: 0.0,
    };

    /// Cost relative to a process in which a profiler has run before.
    pub const PROFILED: ProfilerCost = ProfilerCost {
        op_us: 0.64,
        annotation_us: 0.9,
        launch_us: 0.97,
        call_us: 0.05,
        step_us: 31.0,
        query_us: 1.4,
        ..ProfilerCost::NONE
    };

    /// Cost relative to a process in which none ever ran.
    pub const FRESH: ProfilerCost = ProfilerCost {
        op_us: 1.8,
        annotation_us: 0.9,
        launch_us: 1.5,
        call_us: 0.18,
        step_us: 31.0,
        copy_us: 55.0,
        compiled_us: 9.0,
        query_us: 2.0,
    };

    /// Cost that a finished profiler leaves in a process; the gaps of profiles were measured in such a process.
    pub const ATTACHED: ProfilerCost =
        ProfilerCost { op_us: 0.36, launch_us: 2.73, call_us: 0.13, query_us: 0.3, ..ProfilerCost::NONE };

    /// Returns the cost on a host that is `factor` times as slow: recording an event is host work like any other.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> ProfilerCost {
        let [op_us, annotation_us, launch_us, call_us, step_us, copy_us, compiled_us, query_us] =
            self.numbers().map(|(_, us)| us * factor);
        ProfilerCost { op_us, annotation_us, launch_us, call_us, step_us, copy_us, compiled_us, query_us }
    }

    /// Returns its fields by name.
    pub(crate) fn numbers(&self) -> [(&'static str, f64); 8] {
        [
            ("op_us", self.op_us),
            ("annotation_us", self.annotation_us),
            ("launch_us", self.launch_us),
            ("call_us", self.call_us),
            ("step_us", self.step_us),
            ("copy_us", self.copy_us),
            ("compiled_us", self.compiled_us),
            ("query_us", self.query_us),
        ]
    }

    /// Shares of an event's cost before and after its beginning, before and after its end.
    const SPREAD: [f64; 4] = [0.35, 0.35, 0.15, 0.15];

    /// Greatest share that a gap loses.
    const MOST: f64 = 0.8;

    /// Returns the profiler's part of each gap, mark by mark.
    pub fn gap_costs(&self, graph: &StepGraph) -> TiVec<MarkId, Nanos> {
        let sides: TiVec<MarkId, [f64; 2]> =
            graph.marks.iter().map(|mark| self.sides(graph, mark.kind)).collect();
        graph
            .marks
            .iter_enumerated()
            .map(|(at, mark)| {
                let step = if mark.wraps && mark.thread == HostThreadId::MAIN { self.step_us } else { 0.0 };
                Nanos::from_micros_f64(sides[mark.after][1] + sides[at][0] + step)
            })
            .collect()
    }

    /// Returns a gap without the profiler's part of it.
    pub fn take_off(gap: Nanos, part: Nanos) -> Nanos {
        let most = Nanos((gap.0.max(0) as f64 * Self::MOST) as i64);
        gap - part.min(most)
    }

    /// Returns the cost just before and just after a mark, microseconds.
    fn sides(&self, graph: &StepGraph, kind: MarkKind) -> [f64; 2] {
        let (cost, begins) = match kind {
            MarkKind::OpBegin(op) => (self.op_cost(graph, op), true),
            MarkKind::OpEnd(op) => (self.op_cost(graph, op), false),
            MarkKind::CallBegin(call) => (self.call_cost(graph, call), true),
            MarkKind::CallEnd(call) => (self.call_cost(graph, call), false),
        };
        let spread = if begins { &Self::SPREAD[..2] } else { &Self::SPREAD[2..] };
        [cost * spread[0] + self.before(graph, kind), cost * spread[1] + self.inside(graph, kind)]
    }

    /// Returns the cost inside a call, after its beginning.
    fn inside(&self, graph: &StepGraph, kind: MarkKind) -> f64 {
        match kind {
            MarkKind::CallBegin(call) if graph.calls[call].kind == ApiKind::FunctionQuery => self.query_us,
            _ => 0.0,
        }
    }

    /// Returns the cost before an event that no event shows: the profiler records the arguments of a compiled kernel.
    fn before(&self, graph: &StepGraph, kind: MarkKind) -> f64 {
        match kind {
            MarkKind::OpBegin(op) if is_compiled(graph.op_name(op)) => self.compiled_us,
            _ => 0.0,
        }
    }

    fn op_cost(&self, graph: &StepGraph, op: OpId) -> f64 {
        if graph.ops[op].annotation { self.annotation_us } else { self.op_us }
    }

    fn call_cost(&self, graph: &StepGraph, call: CallId) -> f64 {
        use ApiKind::{EventRecord, StreamWait};
        let row = &graph.calls[call];
        if row.is_pageable_copy(graph) {
            return self.launch_us + self.copy_us;
        }
        let kind = row.kind;
        let heavy = kind.launches() || kind.synchronises() || matches!(kind, EventRecord | StreamWait);
        if heavy { self.launch_us } else { self.call_us }
    }
}
