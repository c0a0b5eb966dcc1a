//! Ids of a graph's rows.

use steptime_trace::ids;

ids! {
    /// Op or annotation: a row of [`StepGraph::ops`](crate::StepGraph::ops).
    OpId;
    /// Runtime or driver call: a row of [`StepGraph::calls`](crate::StepGraph::calls).
    CallId;
    /// Kernel, copy or memset: a row of [`StepGraph::activities`](crate::StepGraph::activities).
    ActivityId;
    /// Collective: a row of [`StepGraph::collectives`](crate::StepGraph::collectives).
    CollectiveId;
    /// Meeting of ranks in a collective: a row of [`Job::rendezvous`](crate::Job::rendezvous).
    RendezvousId;
    /// Beginning or end of an op or call: a row of [`StepGraph::marks`](crate::StepGraph::marks).
    MarkId;
    /// Host thread: a row of [`StepGraph::threads`](crate::StepGraph::threads).
    HostThreadId;
    /// Recorded step: a row of [`StepGraph::steps`](crate::StepGraph::steps), a column of
    /// [`Samples`](crate::Samples).
    StepId;
    /// Node, by its position in id order, which is also its row in [`ExecutionTrace::nodes`](steptime_trace::ExecutionTrace::nodes).
    NodeId;
    /// Op of a timing trace: a row of [`Trace::ops`](steptime_trace::Trace::ops).
    TraceOp;
    /// Call of a timing trace: a row of [`Trace::calls`](steptime_trace::Trace::calls).
    TraceCall;
    /// Activity of a timing trace: a row of [`Trace::activities`](steptime_trace::Trace::activities).
    TraceActivity;
}

impl NodeId {
    /// Returns the node at an index; the reader counts in `u32` too.
    pub(crate) fn at(index: usize) -> NodeId {
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

impl HostThreadId {
    /// Thread that runs the script: the first row.
    pub const MAIN: HostThreadId = HostThreadId(0);
}
