//! The captured step.
#![allow(unsafe_code, reason = "a captured graph uses memory that the type system does not tie to it")]

use steptime_cuda::{Error, Graph, Parts, Stream};

/// Launches of a whole step as one CUDA graph.
#[derive(Debug)]
pub(super) struct Replay(Graph);

/// Captures a step in parts.
///
/// # Errors
/// An operation that cannot be captured, or an error of `work`.
pub(super) fn capture_step(
    stream: &Stream,
    work: impl FnOnce(&Stream, &mut Parts<'_>) -> Result<(), Error>,
) -> Result<Replay, Error> {
    Graph::capture_parts(stream, work).map(Replay)
}

impl Replay {
    /// Puts all launches into the stream.
    ///
    /// # Errors
    /// The driver refuses.
    pub(super) fn run(&mut self) -> Result<(), Error> {
        // SAFETY: only the engine makes a replay, and runs it where the row caches have their slots in the same buffers. The launches use its
        // regions and the operators of its program, which stay at their places as long as the session lives; the engine drops the replay
        // first, and at every new preparation. All other uses of that memory are in the same stream, or wait for it; row caches move rows
        // of other batches meanwhile, at places that this one does not use. Parts that use the same bytes are ordered by `Hazards`.
        unsafe { self.0.replay() }
    }
}
