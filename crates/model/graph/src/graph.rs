//! The execution graph: one template step as rows, and the samples measured for it as columns.

use steptime_trace::{ActivityKind, Bytes, NameId, Nanos, Stream, StreamId, Strings};
use typed_index_collections::{TiSlice, TiVec};

use crate::coverage::Coverage;
use crate::execution::NodeId;
use crate::ids::{ActivityId, CallId, HostThreadId, MarkId, OpId, StepId, TraceActivity, TraceOp};
use crate::names::{ApiKind, CopyName, HostMemory};
use crate::phase::Phase;
use crate::samples::Samples;
use crate::steps::{StepSource, StepWindow};

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
    /// Beginnings and ends of ops and calls, thread by thread.
    pub marks: TiVec<MarkId, Mark>,
    /// Dependencies between streams, from events, sorted by the activity that waits.
    pub waits: Vec<StreamDependency>,
    /// For each activity: how long after the device could take it up it begins, where it was seen queued.
    pub queue_delays: TiVec<ActivityId, Option<Nanos>>,
    /// What was measured, step by step.
    pub samples: Samples,
    /// The steps of the recording, all of them.
    pub steps: TiVec<StepId, StepWindow>,
    /// How the steps were found.
    pub step_source: StepSource,
    /// How much of the recording the graph holds.
    pub coverage: Coverage,
    /// Name of the device, where the recording has it.
    pub device: Option<String>,
}

/// What a host thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Runs the script: input, forward, optimizer.
    Main,
    /// Runs the backward pass.
    Autograd,
    /// Any other.
    Other,
}

/// A host thread of the template step.
#[derive(Debug, Clone)]
pub struct Thread {
    /// The operating system's id.
    pub tid: i64,
    /// What it is for.
    pub role: Role,
    /// First mark, in [`StepGraph::marks`].
    pub first_mark: MarkId,
    /// One past the last mark.
    pub end_mark: MarkId,
}

/// An op or an annotation of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// Its name.
    pub name: NameId,
    /// Whether it is a user's annotation, which does no work of its own.
    pub annotation: bool,
    /// Its thread.
    pub thread: HostThreadId,
    /// The innermost op around it.
    pub parent: Option<OpId>,
    /// Mark where it begins.
    pub begin: MarkId,
    /// Mark where it ends.
    pub end: MarkId,
    /// Sequence number that ties forward to backward; -1 where absent.
    pub sequence: i64,
    /// Where it was recorded.
    pub origin: OpOrigin,
    /// The part of the step it belongs to.
    pub phase: Phase,
}

/// Where an op of the template step was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpOrigin {
    /// In the timing trace.
    Timing(TraceOp),
    /// In the execution trace from which the step was derived.
    Execution(NodeId),
    /// Nowhere: it stands for another that was recorded, as where a step was moved to another device.
    Derived,
}

/// A runtime or driver call of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its name.
    pub api: NameId,
    /// What it does.
    pub kind: ApiKind,
    /// Its thread.
    pub thread: HostThreadId,
    /// The innermost op that contains it; `None` outside any op.
    pub op: Option<OpId>,
    /// Mark where it begins.
    pub begin: MarkId,
    /// Mark where it ends.
    pub end: MarkId,
    /// First device activity it launched.
    pub first_activity: ActivityId,
    /// One past the last.
    pub end_activity: ActivityId,
    /// How the call and the device wait for one another.
    pub blocking: Blocking,
}

impl Call {
    /// The device activities it launched.
    pub fn activities(
        &self,
    ) -> impl DoubleEndedIterator<Item = ActivityId> + ExactSizeIterator + Clone + use<> {
        self.first_activity.until(self.end_activity)
    }

    /// Whether it launched a device activity.
    pub fn has_activities(&self) -> bool {
        self.first_activity < self.end_activity
    }

    /// Whether it copies from or to pageable memory.
    pub fn is_pageable_copy(&self, graph: &StepGraph) -> bool {
        matches!(self.kind, ApiKind::Copy | ApiKind::BlockingCopy)
            && self.activities().len() == 1
            && graph.copy_name(self.first_activity).host == HostMemory::Pageable
    }
}

/// How a call waits for the device, decided from what was measured, not from the call's name alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blocking {
    /// It does not: the time it takes is the host's own.
    Never,
    /// A pageable copy in chunks: the device begins while the host still stages, and the host returns
    /// `tail` before the device ends (after it, where negative).
    Chunked {
        /// From the beginning of the call to the beginning of the copy, on an idle device; `None` where the
        /// device was always busy.
        lead: Option<Nanos>,
        /// From the return of the call to the end of the copy.
        tail: Nanos,
    },
    /// Returns once the streams named are idle.
    Streams(StreamSet),
    /// Returns once one activity is done.
    Activity(ActivityId),
}

/// Streams to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamSet {
    /// All streams of the device.
    All,
    /// One of [`StepGraph::streams`].
    One(StreamId),
}

/// A device activity of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// Kernel, copy or memset.
    pub kind: ActivityKind,
    /// Name of the kernel or copy.
    pub name: NameId,
    /// Its stream.
    pub stream: StreamId,
    /// The call that launched it.
    pub call: CallId,
    /// Bytes copied or set; zero for kernels.
    pub bytes: Bytes,
    /// Its row in the timing trace, in the template step; `None` where it was derived.
    pub recorded: Option<TraceActivity>,
}

/// What a mark marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkKind {
    /// An op begins.
    OpBegin(OpId),
    /// An op ends.
    OpEnd(OpId),
    /// A call begins.
    CallBegin(CallId),
    /// A call ends.
    CallEnd(CallId),
}

/// A beginning or an end on a host thread.
///
/// The host time that ends at a mark is its *gap*: from the mark it comes [`after`](Mark::after) to the mark.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// What begins or ends.
    pub kind: MarkKind,
    /// Its thread.
    pub thread: HostThreadId,
    /// The mark whose passing lets this one come: the one before on the same thread or, at a hand-off,
    /// a mark of another thread.
    pub after: MarkId,
    /// Whether `after` lies in the previous step.
    pub wraps: bool,
}

/// A wait of one stream for another, through an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDependency {
    /// The activity that must end.
    pub from: ActivityId,
    /// The activity that waits for it.
    pub to: ActivityId,
    /// Whether the pair was inferred from the order of calls or from times, for want of synchronisation records.
    pub inferred: bool,
    /// Whether `from` is of the step before.
    pub wraps: bool,
}

/// For each op, the outermost one around it that is not an annotation: itself where there is none. Every op comes after
/// the one around it.
pub fn tops(ops: &TiSlice<OpId, Op>) -> TiVec<OpId, OpId> {
    // An annotation hands on what is around it; where that is nothing, what is inside is outermost.
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

    /// The innermost op open just before a mark: for the mark of an op, the op around it.
    pub fn enclosing_op(&self, mark: MarkId) -> Option<OpId> {
        match self.marks[mark].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op].parent,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].op,
        }
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

    /// Whether a mark of another thread lets this one come.
    pub fn is_hand_off(&self, mark: MarkId) -> bool {
        let row = &self.marks[mark];
        self.marks[row.after].thread != row.thread
    }

    /// The part of the step that the gap before a mark belongs to: that of the op it leads to, and on the way
    /// back from the backward thread the backward pass.
    pub fn phase_of_mark(&self, mark: MarkId) -> Phase {
        let row = &self.marks[mark];
        let from = self.marks[row.after].thread;
        if self.is_hand_off(mark) && !row.wraps && self.threads[from].role == Role::Autograd {
            return Phase::Backward;
        }
        let op = match row.kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => Some(op),
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call].op,
        };
        op.map_or(Phase::Other, |op| self.ops[op].phase)
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
