//! The ranks of a job: predicted together, and as recorded.

mod planned;
mod predicted;
mod recorded;
mod validated;

use serde::Serialize;
use steptime_graph::Rendezvous;
use steptime_sim::world::Parts;

pub use self::planned::{PlannedJobs, PlannedRow, Ranked};
pub use self::predicted::{JobPiece, PredictedCollective, PredictedJob, PredictedRank, SlowestSaid};
pub use self::recorded::{ReasonSaid, RecordedCollective, RecordedJob, RecordedRank, StragglerSaid};
pub use self::validated::{JobRow, ValidatedJobs};
use super::shared::ms;

/// What a rank's device does in a step, milliseconds; the first four add up to the step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceParts {
    /// Runs work of its own.
    pub computes_ms: f64,
    /// Moves data to other ranks, and nothing else runs: communication that is exposed.
    pub moves_ms: f64,
    /// Waits for other ranks inside collectives, and nothing else runs.
    pub waits_ms: f64,
    /// Runs nothing.
    pub idles_ms: f64,
    /// Moves data beside work of its own: communication that is hidden.
    pub hidden_ms: f64,
    /// Waits for other ranks beside work of its own.
    pub waits_beside_ms: f64,
}

impl DeviceParts {
    fn new(parts: &Parts) -> DeviceParts {
        DeviceParts {
            computes_ms: ms(parts.computes),
            moves_ms: ms(parts.moves),
            waits_ms: ms(parts.waits),
            idles_ms: ms(parts.idles),
            hidden_ms: ms(parts.hidden),
            waits_beside_ms: ms(parts.waits_beside),
        }
    }
}

/// A collective of the step: what, among whom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CollectiveSaid {
    /// `all_reduce`, `all_to_all`, ...
    pub op: &'static str,
    /// The process group's name.
    pub group: String,
    /// The ranks that were recorded of it.
    pub ranks: Vec<u32>,
    /// How many ranks take part, where that is known: more than were recorded where one stands for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The most that one of them sends or receives.
    pub bytes: u64,
}

impl CollectiveSaid {
    fn new(numbers: &[u32], met: &Rendezvous) -> CollectiveSaid {
        CollectiveSaid {
            op: met.kind.name(),
            group: met.group.name.clone(),
            ranks: met.members.iter().map(|member| numbers[member.rank]).collect(),
            size: met.group.size,
            bytes: met.bytes.0,
        }
    }
}
