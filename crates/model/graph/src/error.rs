//! Errors of building a graph.

/// Reason why no graph could be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace has no ops and no calls.
    #[error("the trace has no host events: record with ProfilerActivity.CPU")]
    NoHostEvents,
    /// The requested step is not in the trace.
    #[error("no step {wanted} in the trace: it has {}", list(known))]
    NoSuchStep {
        /// Requested step number.
        wanted: u32,
        /// Step numbers of the trace.
        known: Vec<u32>,
    },
    /// Ops nest deeper than the limit of walks over them.
    #[error(
        "ops nest {depth} deep, and at most {} are read: the file is damaged, or its step calls `record_function` \
         without leaving it; record the step again",
        crate::nesting_limit::DEEPEST
    )]
    TooDeep {
        /// Largest nesting depth of an op, itself included.
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
