//! Step graph: one template step as rows, and its measured samples as columns.

use steptime_trace::{NameId, Nanos, Stream, StreamId, Strings};
use typed_index_collections::{TiSlice, TiVec};

use crate::collectives::Collective;
use crate::coverage::Coverage;
use crate::ids::{ActivityId, CallId, CollectiveId, HostThreadId, MarkId, OpId, StepId};
use crate::independent_check::IndependentCheck;
use crate::names::{ApiKind, CopyName, EventName, HostMemory};
use crate::samples::Samples;
use crate::steps::{StepSource, StepWindow};
use crate::tables::{Activity, Call, Mark, MarkKind, Op, Phase, Role, StreamDependency, Thread};

/// Step graph of one rank: the events of a step, and the times measured for each of them.
#[derive(Debug, Clone)]
pub struct StepGraph {
    /// Interned names of ops, calls and kernels.
    pub names: Strings,
    /// Host threads; each has a range of [`StepGraph::marks`].
    pub threads: TiVec<HostThreadId, Thread>,
    /// Device streams.
    pub streams: TiVec<StreamId, Stream>,
    /// Ops and annotations of the template step, in order of their beginning, thread by thread.
    pub ops: TiVec<OpId, Op>,
    /// For each op, the outermost op around it: see [`StepGraph::top_level`].
    pub tops: TiVec<OpId, OpId>,
    /// Runtime and driver calls of the template step, in order, thread by thread.
    pub calls: TiVec<CallId, Call>,
    /// Kernels, copies and memsets of the template step, grouped by the call that launched them.
    pub activities: TiVec<ActivityId, Activity>,
    /// Collectives that activities take part in.
    pub collectives: TiVec<CollectiveId, Collective>,
    /// Beginnings and ends of ops and calls, thread by thread.
    pub marks: TiVec<MarkId, Mark>,
    /// Dependencies between streams, from events, sorted by the activity that waits.
    pub waits: Vec<StreamDependency>,
    /// For each activity: the delay between the time when its stream was free and its start. `None` if it was
    /// rarely queued.
    pub queue_delays: TiVec<ActivityId, Option<Nanos>>,
    /// For each activity: the delay of its start on an idle stream, if it is far longer than any launch takes, in all
    /// steps: it waits for something that was not recorded.
    pub held_back: TiVec<ActivityId, Nanos>,
    /// Measured times, per step.
    pub samples: Samples,
    /// All steps of the recording.
    pub steps: TiVec<StepId, StepWindow>,
    /// Source of the steps.
    pub step_source: StepSource,
    /// Coverage of the recording by the graph.
    pub coverage: Coverage,
    /// Period and device active time of a step, read from the recording's marks and kernels alone.
    pub witness: IndependentCheck,
    /// Name of the device, if recorded.
    pub device: Option<String>,
}

/// Returns for each op the outermost op around it that is not an annotation; the op itself if there is none. A parent must
/// come before its children.
pub fn tops(ops: &TiSlice<OpId, Op>) -> TiVec<OpId, OpId> {
    // Annotations are skipped: an op that is inside annotations only is outermost.
    let mut around: TiVec<OpId, Option<OpId>> = TiVec::with_capacity(ops.len());
    let mut tops = TiVec::with_capacity(ops.len());
    for (at, op) in ops.iter_enumerated() {
        let outer = op.parent.and_then(|parent| around[parent]);
        tops.push(outer.unwrap_or(at));
        around.push(outer.or((!op.annotation).then_some(at)));
    }
    tops
}

impl StepGraph {
    /// Returns a step without rows, samples and device, to be filled by hand.
    #[must_use]
    pub fn empty() -> StepGraph {
        StepGraph {
            names: Strings::default(),
            threads: TiVec::new(),
            streams: TiVec::new(),
            ops: TiVec::new(),
            tops: TiVec::new(),
            calls: TiVec::new(),
            activities: TiVec::new(),
            collectives: TiVec::new(),
            marks: TiVec::new(),
            waits: Vec::new(),
            queue_delays: TiVec::new(),
            held_back: TiVec::new(),
            samples: Samples::default(),
            steps: TiVec::new(),
            step_source: StepSource::Whole,
            coverage: Coverage::default(),
            witness: IndependentCheck::default(),
            device: None,
        }
    }

    /// Returns the name of an op.
    pub fn op_name(&self, op: OpId) -> &str {
        self.names.get(self.ops[op].name)
    }

    /// Parses the name of an activity as that of a copy.
    pub fn copy_name(&self, activity: ActivityId) -> CopyName {
        CopyName::parse(self.names.get(self.activities[activity].name))
    }

    /// Returns the name of the op or call of a mark.
    pub fn mark_name(&self, mark: MarkId) -> NameId {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op].name,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].api,
        }
    }

    /// Returns the op that a mark belongs to: the op that begins or ends there, or makes the call; `None` for a call outside of ops.
    pub fn op_of_mark(&self, mark: MarkId) -> Option<OpId> {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => Some(op),
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].op,
        }
    }

    /// Returns the innermost op open just before a mark: for the mark of an op, the op around it.
    pub fn enclosing_op(&self, mark: MarkId) -> Option<OpId> {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op].parent,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].op,
        }
    }

    /// Whether the gap before a mark is spent in a data loader that makes the next batch, on the main thread.
    pub fn waits_for_input(&self, mark: MarkId) -> bool {
        let row = &self.marks[mark];
        let inside = match row.kind {
            MarkKind::OpEnd(op) => Some(op),
            _ => self.enclosing_op(mark),
        };
        let is_loader = |op: OpId| EventName::parse(self.op_name(op)) == EventName::DataLoader;
        row.thread == HostThreadId::MAIN
            && std::iter::successors(inside, |&op| self.ops[op].parent).any(is_loader)
    }

    /// Returns the outermost op around an op that is not an annotation: the op itself if there is none.
    pub fn top_level(&self, op: OpId) -> OpId {
        self.tops[op]
    }

    /// Whether an op is outermost, apart from annotations.
    pub fn is_top_level(&self, op: OpId) -> bool {
        !self.ops[op].annotation && self.top_level(op) == op
    }

    /// Returns the dependencies of one activity on other streams.
    pub fn waits_of(&self, activity: ActivityId) -> impl Iterator<Item = &StreamDependency> {
        let from = self.waits.partition_point(|w| w.to < activity);
        self.waits[from..].iter().take_while(move |w| w.to == activity)
    }

    /// Whether a mark waits for a mark of another thread.
    pub fn is_hand_off(&self, mark: MarkId) -> bool {
        let row = &self.marks[mark];
        self.marks[row.after].thread != row.thread
    }

    /// Returns the phase of the gap before a mark: the phase of the op that the mark belongs to. A hand-off from the backward
    /// thread counts as the backward pass.
    pub fn phase_of_mark(&self, mark: MarkId) -> Phase {
        let row = &self.marks[mark];
        let from = self.marks[row.after].thread;
        if self.is_hand_off(mark) && !row.wraps && self.threads[from].role == Role::Autograd {
            return Phase::Backward;
        }
        self.op_of_mark(mark).map_or(Phase::Other, |op| self.ops[op].phase)
    }

    /// Whether any step was measured. A graph derived from an execution trace alone has no times.
    pub fn is_measured(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Returns the calls of all threads in time order, as in the first step that was measured in full.
    pub fn calls_by_time(&self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = self.calls.keys().collect();
        if let Some(step) = self.complete_step() {
            calls.sort_by_key(|&c| self.samples.mark(step, self.calls[c].begin));
        }
        calls
    }

    /// Returns the first step in which every mark was measured.
    pub fn complete_step(&self) -> Option<StepId> {
        self.samples
            .steps()
            .find(|&step| self.marks.keys().all(|mark| self.samples.mark(step, mark).is_some()))
    }
}

impl Call {
    /// Whether it copies from or to pageable memory.
    pub fn is_pageable_copy(&self, graph: &StepGraph) -> bool {
        matches!(self.kind, ApiKind::Copy | ApiKind::BlockingCopy)
            && self.activities().len() == 1
            && graph.copy_name(self.first_activity).host == HostMemory::Pageable
    }
}
