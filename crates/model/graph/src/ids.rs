//! The ids of a graph's rows.

use steptime_trace::ids;

ids! {
    /// An op or annotation: a row of [`StepGraph::ops`](crate::StepGraph::ops).
    OpId;
    /// A runtime or driver call: a row of [`StepGraph::calls`](crate::StepGraph::calls).
    CallId;
    /// A kernel, copy or memset: a row of [`StepGraph::activities`](crate::StepGraph::activities).
    ActivityId;
    /// A collective: a row of [`StepGraph::collectives`](crate::StepGraph::collectives).
    CollectiveId;
    /// Where ranks meet in a collective: a row of [`Job::rendezvous`](crate::Job::rendezvous).
    RendezvousId;
    /// A beginning or an end: a row of [`StepGraph::marks`](crate::StepGraph::marks).
    MarkId;
    /// A host thread: a row of [`StepGraph::threads`](crate::StepGraph::threads).
    HostThreadId;
    /// A recorded step: a row of [`StepGraph::steps`](crate::StepGraph::steps), a column of
    /// [`Samples`](crate::Samples).
    StepId;
    /// An op of a timing trace: a row of [`Trace::ops`](steptime_trace::Trace::ops).
    TraceOp;
    /// A call of a timing trace: a row of [`Trace::calls`](steptime_trace::Trace::calls).
    TraceCall;
    /// An activity of a timing trace: a row of [`Trace::activities`](steptime_trace::Trace::activities).
    TraceActivity;
}

impl HostThreadId {
    /// The thread that runs the script: the first row.
    pub const MAIN: HostThreadId = HostThreadId(0);
}
