//! Ids of threads and streams.

crate::ids! {
    /// Position in [`Trace::threads`](super::Trace::threads).
    ThreadId;
    /// Position in [`Trace::streams`](super::Trace::streams).
    StreamId;
}
