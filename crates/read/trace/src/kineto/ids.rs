//! The ids of threads and streams.

crate::ids! {
    /// A position in [`Trace::threads`](super::Trace::threads).
    ThreadId;
    /// A position in [`Trace::streams`](super::Trace::streams).
    StreamId;
}
