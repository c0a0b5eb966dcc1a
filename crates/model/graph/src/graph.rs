//! The execution graph: one template step as rows, and the samples measured for it as columns.

use steptime_trace::{ActivityKind, Bytes, NameId, Nanos, Stream, Strings};

use crate::coverage::Coverage;
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
    pub threads: Vec<Thread>,
    /// Device streams.
    pub streams: Vec<Stream>,
    /// Ops and annotations of the template step, in order of their beginning, thread by thread.
    pub ops: Vec<Op>,
    /// For each op, the outermost op around it: see [`StepGraph::top_level`].
    pub tops: Vec<u32>,
    /// Runtime and driver calls of the template step, in order, thread by thread.
    pub calls: Vec<Call>,
    /// Kernels, copies and memsets of the template step, grouped by the call that launched them.
    pub activities: Vec<Activity>,
    /// Beginnings and ends of ops and calls, thread by thread.
    pub marks: Vec<Mark>,
    /// Dependencies between streams, from events, sorted by the activity that waits.
    pub waits: Vec<StreamDependency>,
    /// For each activity: how long after the device could take it up it begins, where it was seen queued.
    pub queue_delays: Vec<Option<Nanos>>,
    /// What was measured, step by step.
    pub samples: Samples,
    /// The steps of the recording, all of them.
    pub steps: Vec<StepWindow>,
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
    pub first_mark: u32,
    /// One past the last mark.
    pub end_mark: u32,
}

/// An op or an annotation of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// Its name.
    pub name: NameId,
    /// Whether it is a user's annotation, which does no work of its own.
    pub annotation: bool,
    /// Index of its thread.
    pub thread: u32,
    /// The innermost op around it.
    pub parent: Option<u32>,
    /// Mark where it begins.
    pub begin: u32,
    /// Mark where it ends.
    pub end: u32,
    /// Sequence number that ties forward to backward; -1 where absent.
    pub sequence: i64,
    /// The op's row in the timing trace, in the template step.
    pub trace_op: u32,
    /// The part of the step it belongs to.
    pub phase: Phase,
}

/// A runtime or driver call of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its name.
    pub api: NameId,
    /// What it does.
    pub kind: ApiKind,
    /// Index of its thread.
    pub thread: u32,
    /// The innermost op that contains it; `None` outside any op.
    pub op: Option<u32>,
    /// Mark where it begins.
    pub begin: u32,
    /// Mark where it ends.
    pub end: u32,
    /// First device activity it launched.
    pub first_activity: u32,
    /// One past the last.
    pub end_activity: u32,
    /// How the call and the device wait for one another.
    pub blocking: Blocking,
}

impl Call {
    /// The device activities it launched.
    pub fn activities(&self) -> std::ops::Range<usize> {
        self.first_activity as usize..self.end_activity as usize
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
    Activity(u32),
}

/// Streams to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamSet {
    /// All streams of the device.
    All,
    /// One, an index of [`StepGraph::streams`].
    One(u32),
}

/// A device activity of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// Kernel, copy or memset.
    pub kind: ActivityKind,
    /// Name of the kernel or copy.
    pub name: NameId,
    /// Index of its stream.
    pub stream: u32,
    /// The call that launched it.
    pub call: u32,
    /// Bytes copied or set; zero for kernels.
    pub bytes: Bytes,
    /// The activity's row in the timing trace, in the template step.
    pub trace_activity: u32,
}

/// What a mark marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkKind {
    /// An op begins.
    OpBegin(u32),
    /// An op ends.
    OpEnd(u32),
    /// A call begins.
    CallBegin(u32),
    /// A call ends.
    CallEnd(u32),
}

/// A beginning or an end on a host thread.
///
/// The host time that ends at a mark is its *gap*: from the mark it comes [`after`](Mark::after) to the mark.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// What begins or ends.
    pub kind: MarkKind,
    /// Index of its thread.
    pub thread: u32,
    /// The mark whose passing lets this one come: the one before on the same thread or, at a hand-off,
    /// a mark of another thread.
    pub after: u32,
    /// Whether `after` lies in the previous step.
    pub wraps: bool,
}

/// A wait of one stream for another, through an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDependency {
    /// The activity that must end.
    pub from: u32,
    /// The activity that waits for it.
    pub to: u32,
    /// Whether the pair was inferred from the order of calls or from times, for want of synchronisation records.
    pub inferred: bool,
    /// Whether `from` is of the step before.
    pub wraps: bool,
}

/// For each op, the outermost one around it that is not an annotation: itself where there is none. Every op comes after
/// the one around it.
pub fn tops(ops: &[Op]) -> Vec<u32> {
    // An annotation hands on what is around it; where that is nothing, what is inside is outermost.
    let mut around: Vec<Option<u32>> = Vec::with_capacity(ops.len());
    let mut tops = Vec::with_capacity(ops.len());
    for (at, op) in (0u32..).zip(ops) {
        let outer = op.parent.and_then(|parent| around[parent as usize]);
        tops.push(outer.unwrap_or(at));
        around.push(outer.or((!op.annotation).then_some(at)));
    }
    tops
}

impl StepGraph {
    /// The name of an op.
    pub fn op_name(&self, op: u32) -> &str {
        self.names.get(self.ops[op as usize].name)
    }

    /// What the name of an activity says, were it a copy.
    pub fn copy_name(&self, activity: u32) -> CopyName {
        CopyName::of(self.names.get(self.activities[activity as usize].name))
    }

    /// The name of what a mark marks.
    pub fn mark_name(&self, mark: u32) -> NameId {
        match self.marks[mark as usize].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op as usize].name,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call as usize].api,
        }
    }

    /// The innermost op open just before a mark: for the mark of an op, the op around it.
    pub fn enclosing_op(&self, mark: u32) -> Option<u32> {
        match self.marks[mark as usize].kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => self.ops[op as usize].parent,
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call as usize].op,
        }
    }

    /// The outermost op around an op that is not an annotation: the op itself where there is none.
    pub fn top_level(&self, op: u32) -> u32 {
        self.tops[op as usize]
    }

    /// Whether no op but annotations is around an op.
    pub fn is_top_level(&self, op: u32) -> bool {
        !self.ops[op as usize].annotation && self.top_level(op) == op
    }

    /// What one activity waits for on other streams.
    pub fn waits_of(&self, activity: u32) -> impl Iterator<Item = &StreamDependency> {
        let from = self.waits.partition_point(|w| w.to < activity);
        self.waits[from..].iter().take_while(move |w| w.to == activity)
    }

    /// Whether a mark of another thread lets this one come.
    pub fn is_hand_off(&self, mark: u32) -> bool {
        let row = &self.marks[mark as usize];
        self.marks[row.after as usize].thread != row.thread
    }

    /// The part of the step that the gap before a mark belongs to: that of the op it leads to, and on the way
    /// back from the backward thread the backward pass.
    pub fn phase_of_mark(&self, mark: u32) -> Phase {
        let row = &self.marks[mark as usize];
        let from = self.marks[row.after as usize].thread;
        if self.is_hand_off(mark) && !row.wraps && self.threads[from as usize].role == Role::Autograd {
            return Phase::Backward;
        }
        let op = match row.kind {
            MarkKind::OpBegin(op) | MarkKind::OpEnd(op) => Some(op),
            MarkKind::CallBegin(call) | MarkKind::CallEnd(call) => self.calls[call as usize].op,
        };
        op.map_or(Phase::Other, |op| self.ops[op as usize].phase)
    }

    /// Calls in the order of time, all threads together, as in the first step that was measured in full.
    pub fn calls_by_time(&self) -> Vec<u32> {
        let mut calls: Vec<u32> = (0..self.calls.len() as u32).collect();
        if let Some(step) = self.complete_step() {
            calls.sort_by_key(|&c| self.samples.mark(step, self.calls[c as usize].begin));
        }
        calls
    }

    /// The first step in which every mark was measured.
    pub fn complete_step(&self) -> Option<usize> {
        let marks = self.marks.len() as u32;
        (0..self.samples.steps()).find(|&s| (0..marks).all(|m| self.samples.mark(s, m).is_some()))
    }
}
