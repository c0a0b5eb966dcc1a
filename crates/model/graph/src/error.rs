//! What can go wrong when a graph is built.

/// Why no graph could be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace has no ops and no calls.
    #[error("the trace has no host events: record with ProfilerActivity.CPU")]
    NoHostEvents,
    /// A step was asked for that the trace does not have.
    #[error("no step {wanted} in the trace: it has {}", list(known))]
    NoSuchStep {
        /// The number asked for.
        wanted: u32,
        /// The numbers there are.
        known: Vec<u32>,
    },
    /// Ops nest deeper than any walk over them goes.
    #[error(
        "ops nest {depth} deep, and at most {} are read: the file is damaged, or its step calls `record_function` \
         without leaving it; record the step again",
        crate::nesting::DEEPEST
    )]
    TooDeep {
        /// The most ops around an op, itself included.
        depth: usize,
    },
}

fn list(numbers: &[u32]) -> String {
    match numbers {
        [] => "none".into(),
        [one] => format!("only step {one}"),
        [first, .., last] => format!("{} steps, {first} to {last}", numbers.len()),
    }
}
