//! The captured step.
#![allow(unsafe_code, reason = "a captured graph uses memory that the type system does not tie to it")]

use steptime_cuda::{Error, Graph};

use super::schedule::Action;

/// Launches of a whole step: CUDA graphs, and between them exchanges with other ranks, which are not captured.
#[derive(Debug)]
pub(super) struct Replay(Vec<Played>);

/// A part of a step.
#[derive(Debug)]
pub(super) enum Played {
    /// Captured instructions.
    Graph(Graph),
    /// Start or end of an exchange.
    Exchange(Action),
}

impl Replay {
    pub(super) fn new(played: Vec<Played>) -> Replay {
        Replay(played)
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.0.len()
    }

    /// Puts the launches of a part into the stream; returns the action of an exchange.
    ///
    /// # Errors
    /// The driver refuses.
    pub(super) fn run(&mut self, part: usize) -> Result<Option<Action>, Error> {
        match &self.0[part] {
            Played::Exchange(action) => Ok(Some(action.clone())),
            Played::Graph(graph) => {
                // SAFETY: only the engine makes a replay, and runs it where the row caches have their slots in the same buffers. The launches use
                // its regions and the operators of its program, which stay at their places as long as the session lives; the engine drops the
                // replay first, and at every new preparation. All other uses of that memory are in the same stream, or wait for it; row caches move
                // rows of other batches meanwhile, at places that this one does not use. Parts that use the same bytes are ordered by `Hazards`,
                // and exchanges beside them by `schedule::actions`.
                unsafe { graph.replay() }?;
                Ok(None)
            }
        }
    }
}
