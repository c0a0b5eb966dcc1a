//! The rows of a graph's tables.

use steptime_trace::{ActivityKind, Bytes, LaunchShape, NameId, Nanos, StreamId};

use crate::execution::NodeId;
use crate::ids::{ActivityId, CallId, CollectiveId, HostThreadId, MarkId, OpId, TraceActivity, TraceOp};
use crate::names::ApiKind;

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
    /// First mark, in [`StepGraph::marks`](crate::StepGraph::marks).
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

/// The part of the step an op belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Brings the batch to the device.
    Input,
    /// Computes the loss.
    Forward,
    /// Computes gradients.
    Backward,
    /// Updates parameters and clears gradients.
    Optimizer,
    /// None of these.
    #[default]
    Other,
}

impl Phase {
    /// All parts, in the order of a step.
    pub const ALL: [Phase; 5] =
        [Phase::Input, Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::Other];

    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Input => "input",
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Optimizer => "optimizer",
            Phase::Other => "other",
        }
    }
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
}

/// How a call waits for the device. Measured times decide it, not the name of the call alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blocking {
    /// It does not: the time it takes is the host's own.
    Never,
    /// A pageable copy in chunks: the device starts while the host still stages. The call returns `tail` before
    /// the copy ends on the device, or after it where `tail` is negative.
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
    /// One of [`StepGraph::streams`](crate::StepGraph::streams).
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
    /// How it was launched, in the template step; `None` for copies, and where it was derived.
    pub launch: Option<LaunchShape>,
    /// What it does together with other ranks.
    pub collective: Option<CollectiveId>,
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
    /// The mark that must come first: the one before on the same thread, or at a hand-off a mark of another
    /// thread.
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
    /// Whether it was inferred from the order of calls or from times, because the trace has no record of it.
    pub inferred: bool,
    /// Whether `from` is of the step before.
    pub wraps: bool,
}
