//! Rows of a graph's tables.

use steptime_trace::{ActivityKind, Bytes, LaunchShape, NameId, Nanos, StreamId};

use crate::ids::{
    ActivityId, CallId, CollectiveId, HostThreadId, MarkId, NodeId, OpId, TraceActivity, TraceOp,
};
use crate::names::ApiKind;

/// Role of a host thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Runs the script: input, forward, optimizer.
    Main,
    /// Runs the backward pass.
    Autograd,
    /// Any other.
    Other,
}

/// Host thread of the template step.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Thread id of the operating system.
    pub tid: i64,
    /// Role in the step.
    pub role: Role,
    /// First mark, in [`StepGraph::marks`](crate::StepGraph::marks).
    pub first_mark: MarkId,
    /// One past the last mark.
    pub end_mark: MarkId,
}

/// Op or annotation of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Op {
    /// Name of the op.
    pub name: NameId,
    /// Whether it is a user's annotation, which does no work of its own.
    pub annotation: bool,
    /// Thread that runs it.
    pub thread: HostThreadId,
    /// Innermost op around it.
    pub parent: Option<OpId>,
    /// Mark where it begins.
    pub begin: MarkId,
    /// Mark where it ends.
    pub end: MarkId,
    /// Sequence number that links forward and backward; -1 if absent.
    pub sequence: i64,
    /// Source of the row.
    pub origin: OpOrigin,
    /// Part of the step that it belongs to.
    pub phase: Phase,
}

/// Part of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Phase {
    /// Copies the batch to the device.
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
    /// All phases, in the order of a step.
    pub const ALL: [Phase; 5] =
        [Phase::Input, Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::Other];

    /// Returns the name in output.
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

/// Source of an op of the template step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpOrigin {
    /// Recorded in the timing trace.
    Timing(TraceOp),
    /// Recorded in the execution trace from which the step was derived.
    Execution(NodeId),
    /// Not recorded: it replaces a recorded op, for example in a step moved to another device.
    Derived,
}

/// Runtime or driver call of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Name of the API function.
    pub api: NameId,
    /// Kind of the call.
    pub kind: ApiKind,
    /// Thread that calls it.
    pub thread: HostThreadId,
    /// Innermost op that contains it; `None` outside any op.
    pub op: Option<OpId>,
    /// Mark where it begins.
    pub begin: MarkId,
    /// Mark where it ends.
    pub end: MarkId,
    /// First device activity it launched.
    pub first_activity: ActivityId,
    /// One past the last device activity it launched.
    pub end_activity: ActivityId,
    /// Wait of the call for the device.
    pub blocking: Blocking,
}

impl Call {
    /// Returns the device activities that it launched.
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

/// Wait of a call for the device. Determined from measured times, not from the call's name alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Blocking {
    /// No wait: its duration is host time.
    Never,
    /// Pageable copy in chunks: the device starts while the host still stages. The call returns `tail` before
    /// the copy ends on the device, or after it if `tail` is negative.
    Chunked {
        /// Time from the beginning of the call to the beginning of the copy, on an idle device; `None` if the
        /// device was always busy.
        lead: Option<Nanos>,
        /// Time from the return of the call to the end of the copy.
        tail: Nanos,
    },
    /// Returns once the given streams are idle.
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

/// Device activity of the template step.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// Kernel, copy or memset.
    pub kind: ActivityKind,
    /// Name of the kernel or copy.
    pub name: NameId,
    /// Stream that it runs on.
    pub stream: StreamId,
    /// Call that launched it.
    pub call: CallId,
    /// Bytes copied or set; zero for kernels.
    pub bytes: Bytes,
    /// Row in the timing trace, in the template step; `None` if it was derived.
    pub recorded: Option<TraceActivity>,
    /// Launch shape in the template step; `None` for copies, and if it was derived.
    pub launch: Option<LaunchShape>,
    /// Collective that it takes part in.
    pub collective: Option<CollectiveId>,
}

/// Event of a mark.
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

/// Beginning or end of an op or call on a host thread.
///
/// The host time that ends at a mark is its *gap*: from the mark it comes [`after`](Mark::after) to the mark itself.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// Event that begins or ends.
    pub kind: MarkKind,
    /// Thread of the event.
    pub thread: HostThreadId,
    /// Mark that must come first: the one before on the same thread, or at a hand-off a mark of another
    /// thread.
    pub after: MarkId,
    /// Whether `after` is in the previous step.
    pub wraps: bool,
}

/// Wait of one stream for another, through an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDependency {
    /// Activity that must end.
    pub from: ActivityId,
    /// Activity that waits for it.
    pub to: ActivityId,
    /// Whether it was inferred from the order of calls or from times, because the trace has no record of it.
    pub inferred: bool,
    /// Whether `from` is in the previous step.
    pub wraps: bool,
}
