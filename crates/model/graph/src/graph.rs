//! The execution graph: one template step as rows, and the samples measured for it as columns.

use steptime_trace::{NameId, Nanos, Stream, StreamId, Strings};
use typed_index_collections::{TiSlice, TiVec};

use crate::collectives::Collective;
use crate::coverage::Coverage;
use crate::ids::{ActivityId, CallId, CollectiveId, HostThreadId, MarkId, OpId, StepId};
use crate::names::{ApiKind, CopyName, EventName, HostMemory};
use crate::samples::Samples;
use crate::steps::{StepSource, StepWindow};
use crate::tables::{Activity, Call, Mark, MarkKind, Op, Phase, Role, StreamDependency, Thread};
use crate::witness::Witness;

/// The execution graph of one rank: what a step does, and what was measured for each part of it.
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
    /// What activities do together with other ranks.
    pub collectives: TiVec<CollectiveId, Collective>,
    /// Beginnings and ends of ops and calls, thread by thread.
    pub marks: TiVec<MarkId, Mark>,
    /// Dependencies between streams, from events, sorted by the activity that waits.
    pub waits: Vec<StreamDependency>,
    /// For each activity: the delay between the time when its stream was free and its start. `None` where it was
    /// rarely seen queued.
    pub queue_delays: TiVec<ActivityId, Option<Nanos>>,
    /// For each activity: the delay of its beginning on an idle stream, where it is far longer than any launch takes, in all
    /// steps: it waits for something that was not recorded.
    pub held_back: TiVec<ActivityId, Nanos>,
    /// What was measured, step by step.
    pub samples: Samples,
    /// The steps of the recording, all of them.
    pub steps: TiVec<StepId, StepWindow>,
    /// How the steps were found.
    pub step_source: StepSource,
    /// How much of the recording the graph holds.
    pub coverage: Coverage,
    /// Period and device active time of a step, read from the recording's marks and kernels alone.
    pub witness: Witness,
    /// Name of the device, where the recording has it.
    pub device: Option<String>,
}

/// For each op, the outermost op around it that is not an annotation; the op itself where there is none. A parent must
/// come before its children.
pub fn tops(ops: &TiSlice<OpId, Op>) -> TiVec<OpId, OpId> {
    // Annotations are skipped: an op inside nothing but annotations is outermost.
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
    /// A step in which nothing runs, to be filled by hand: no rows, no samples, no device.
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
            witness: Witness::default(),
            device: None,
        }
    }

    /// The name of an op.
    pub fn op_name(&self, op: OpId) -> &str {
        self.names.get(self.ops[op].name)
    }

    /// What the name of an activity says, were it a copy.
    pub fn copy_name(&self, activity: ActivityId) -> CopyName {
        CopyName::of(self.names.get(self.activities[activity].name))
    }

    /// The name of what a mark marks.
    pub fn mark_name(&self, mark: MarkId) -> NameId {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op].name,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].api,
        }
    }

    /// The op that a mark belongs to: that which begins or ends there, or makes the call; `None` for a call outside of ops.
    pub fn op_of_mark(&self, mark: MarkId) -> Option<OpId> {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => Some(op),
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].op,
        }
    }

    /// The innermost op open just before a mark: for the mark of an op, the op around it.
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
        let is_loader = |op: OpId| EventName::of(self.op_name(op)) == EventName::DataLoader;
        row.thread == HostThreadId::MAIN
            && std::iter::successors(inside, |&op| self.ops[op].parent).any(is_loader)
    }

    /// The outermost op around an op that is not an annotation: the op itself where there is none.
    pub fn top_level(&self, op: OpId) -> OpId {
        self.tops[op]
    }

    /// Whether no op but annotations is around an op.
    pub fn is_top_level(&self, op: OpId) -> bool {
        !self.ops[op].annotation && self.top_level(op) == op
    }

    /// What one activity waits for on other streams.
    pub fn waits_of(&self, activity: ActivityId) -> impl Iterator<Item = &StreamDependency> {
        let from = self.waits.partition_point(|w| w.to < activity);
        self.waits[from..].iter().take_while(move |w| w.to == activity)
    }

    /// Whether a mark waits for one of another thread.
    pub fn is_hand_off(&self, mark: MarkId) -> bool {
        let row = &self.marks[mark];
        self.marks[row.after].thread != row.thread
    }

    /// The phase of the gap before a mark: the phase of the op that the mark belongs to. The way back from the backward
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

    /// Calls in the order of time, all threads together, as in the first step that was measured in full.
    pub fn calls_by_time(&self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = self.calls.keys().collect();
        if let Some(step) = self.complete_step() {
            calls.sort_by_key(|&c| self.samples.mark(step, self.calls[c].begin));
        }
        calls
    }

    /// The first step in which every mark was measured.
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
